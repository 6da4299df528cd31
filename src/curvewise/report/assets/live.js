// The live page: asks the server it came from how far the study is, and shows it.
const EVERY = 3000;
const LATER = 15000;
const MOST = 40; // learners with a line of their own
const at = (id) => document.getElementById(id);

const rows = (table, names, values) => {
  table.replaceChildren();
  const head = make("tr", {}, make("thead", {}, table));
  for (const name of names) make("th", { scope: "col" }, head, name);
  const body = make("tbody", {}, table);
  for (const row of values) {
    const line = make("tr", {}, body);
    for (const cell of row) {
      const isNumber = typeof cell === "number";
      const place = make("td", isNumber ? { class: "number" } : {}, line);
      make("bdi", {}, place, isNumber ? number(cell) : String(cell));
    }
  }
};

const progress = (state) => {
  const counts = Object.entries(state.counts).filter(([, count]) => count);
  const said = counts.map(([name, count]) => `${count.toLocaleString("en")} ${name}`);
  at("bar").setAttribute("aria-label", `Of ${state.planned} runs: ${said.join(", ")}`);
  at("bar").replaceChildren();
  at("counts").replaceChildren();
  counts.forEach(([name, count], i) => {
    const part = make("div", { "data-state": name }, at("bar"));
    part.style.width = `${(100 * count) / state.planned}%`;
    const item = make("li", { "data-state": name }, at("counts"));
    make("span", { class: "dot" }, item);
    item.append(said[i]);
  });
  document.title = `${Math.floor((100 * state.counts.finished) / Math.max(1, state.planned))}% ${state.name}`;
};

const chart = (series, word, suffix) => {
  const box = { width: 760, height: 380, left: 62, right: 14, top: 12, bottom: 46 };
  const all = series.flatMap((s) => [...s.means, ...s.points]);
  const sizes = [...new Set(all.map((p) => p.n))].sort((a, b) => a - b);
  const values = all.map((p) => p.value);
  const [first, last] = [Math.log(sizes[0]), Math.log(sizes[sizes.length - 1])];
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (word === "error") low = Math.min(0, low);
  if (high === low) [low, high] = [low - 0.5, high + 0.5];
  high += 0.04 * (high - low);
  const heights = nice(low, high, 6, 3);
  box.left = Math.max(box.left, 34 + Math.max(...heights.map((t) => inkOf(tick(t)))));
  const wide = box.width - box.left - box.right;
  const tall = box.height - box.top - box.bottom;
  const X = (n) => box.left + wide * (first === last ? 0.5 : (Math.log(n) - first) / (last - first));
  const Y = (v) => box.top + tall * (1 - (v - low) / (high - low));
  const label = `Mean ${word} by training size so far; the table below has the numbers.`;
  const svg = draw("svg", { viewBox: `0 0 ${box.width} ${box.height}`, class: "chart", role: "img", "aria-label": label });
  const grid = draw("g", { class: "grid", "aria-hidden": "true" }, svg);
  for (const t of heights) {
    draw("line", { x1: box.left, x2: box.width - box.right, y1: Y(t), y2: Y(t) }, grid);
    draw("text", { x: box.left - 8, y: Y(t) + 4, "text-anchor": "end" }, grid, tick(t));
  }
  let before = -Infinity; // where the label before ends
  for (const n of sizes) {
    const half = Math.max(22, 4 + inkOf(number(n)) / 2);
    if (X(n) - half < before) continue;
    before = X(n) + half;
    draw("text", { x: X(n), y: box.height - box.bottom + 18, "text-anchor": "middle" }, grid, number(n));
  }
  draw("text", { x: box.left + wide / 2, y: box.height - 8, "text-anchor": "middle", class: "name" }, grid, "number of training samples");
  const middle = box.top + tall / 2;
  draw("text", { x: 16, y: middle, "text-anchor": "middle", transform: `rotate(-90 16 ${middle})`, class: "name" }, grid, suffix ? `${word} (${suffix})` : word);
  series.slice(0, MOST).forEach((one, i) => {
    const group = draw("g", { class: `series ${dashOf({ place: i })}`, style: styleOf({ place: i }) }, svg);
    for (const p of one.points) draw("circle", { class: "run", cx: X(p.n), cy: Y(p.value), r: 2 }, group);
    const path = one.means.map((p) => `${X(p.n).toFixed(1)},${Y(p.value).toFixed(1)}`);
    if (path.length > 1) draw("path", { class: "line", d: `M${path.join("L")}` }, group);
    for (const p of one.means) {
      const dot = draw("circle", { cx: X(p.n), cy: Y(p.value), r: 4 }, group);
      draw("title", {}, dot, `${one.name}, n = ${number(p.n)}: ${number(p.value)}${suffix}, ${p.runs === 1 ? "one run" : `mean of ${p.runs} runs`}`);
    }
  });
  return svg;
};

const measured = (state) => {
  const series = state.series.filter((s) => s.means.length);
  at("curves").hidden = !series.length;
  if (!series.length) return;
  at("legend").replaceChildren();
  series.slice(0, MOST).forEach((one, i) => {
    const item = make("span", {}, at("legend"));
    make("span", { class: "dot", style: styleOf({ place: i }) }, item);
    make("bdi", {}, item, one.name);
  });
  if (series.length > MOST) make("span", {}, at("legend"), `and ${series.length - MOST} more, in the table`);
  at("chart").replaceChildren(chart(series, state.word, state.suffix));
  const cells = series.flatMap((s) => s.means.map((p) => [s.name, p.n, p.runs, p.value]));
  rows(at("means"), ["learner", "n", "runs", `mean ${state.word}${state.suffix ? ` (${state.suffix})` : ""}`], cells);
};

const show = (state) => {
  at("problem").hidden = !state.problem;
  at("problem").textContent = state.problem || "";
  if (state.problem) return;
  if (at("summary").textContent !== state.summary) at("summary").textContent = state.summary;
  at("left").textContent = `${state.left[0].toUpperCase()}${state.left.slice(1)}.`;
  progress(state);
  measured(state);
  at("failures").hidden = !state.failures.length;
  rows(at("reasons"), ["runs", "learners", "reason"], state.failures.map((f) => [f.count, f.learners, f.message]));
  const notes = [...state.workers, ...state.warnings];
  at("more").hidden = !notes.length;
  at("notes").replaceChildren(...notes.map((text) => make("li", {}, null, text)));
};

const ask = async () => {
  let wait = EVERY;
  try {
    const answer = await fetch("state.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const state = await answer.json();
    show(state);
    if (state.finished) wait = LATER;
    at("when").textContent = `Updated at ${new Date().toLocaleTimeString()}.`;
    document.body.dataset.ready = "yes";
  } catch (error) {
    at("problem").hidden = false;
    at("problem").textContent = "No answer: the command that serves this page was stopped. Below is the last state.";
    wait = LATER;
  }
  setTimeout(ask, wait);
};
ask();
