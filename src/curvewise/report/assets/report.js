// Everything a report does in a browser: charts, learners chosen, tables sorted, light and dark.
// It asks nothing of the network; what it shows is in the page.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const $ = (query, inside = document) => inside.querySelector(query);
  const $$ = (query, inside = document) => [...inside.querySelectorAll(query)];

  const make = (name, attributes = {}, parent = null, text = null) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };
  const draw = (name, attributes = {}, parent = null, text = null) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };
  const read = (id) => {
    const place = document.getElementById(id);
    return place ? JSON.parse(place.textContent) : null;
  };

  // --- numbers for people, as Python writes them
  const number = (value, digits = 4) => {
    if (value === null || Number.isNaN(value)) return "unknown";
    if (value === "Infinity" || value === Infinity) return "∞";
    if (value === "-Infinity" || value === -Infinity) return "−∞";
    if (Number.isInteger(value) && Math.abs(value) < 1e9) {
      return Math.abs(value) >= 1e4 ? value.toLocaleString("en") : String(value);
    }
    const written = Number(value.toPrecision(digits));
    const size = Math.abs(written);
    if (size >= 1e4 && size < 1e15) return written.toLocaleString("en");
    return size !== 0 && size < 1e-4 ? written.toExponential() : String(written);
  };
  const about = (n) => number(Number.isFinite(n) ? Math.round(Number(n.toPrecision(3))) : n);
  const finite = (value) => (value === "Infinity" ? Infinity : value === "-Infinity" ? -Infinity : value);

  // --- one learner chosen for the whole page
  const chosen = { name: null, listeners: [] };
  const choose = (name) => {
    chosen.name = chosen.name === name ? null : name;
    document.body.classList.toggle("choosing", chosen.name !== null);
    for (const part of $$("[data-learner]")) {
      part.classList.toggle("chosen", part.dataset.learner === chosen.name);
    }
    for (const button of $$("button[data-learner]")) {
      button.setAttribute("aria-pressed", String(button.dataset.learner === chosen.name));
    }
    for (const listener of chosen.listeners) listener();
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-learner]");
    if (button) choose(button.dataset.learner);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen.name !== null) choose(chosen.name);
  });

  // --- scales
  const SCALES = {
    linear: { to: (n) => n, label: "training size n" },
    log: { to: (n) => Math.log10(n), label: "training size n" },
    root: { to: (n) => -1 / Math.sqrt(n), label: "training size n, spaced by n^−½" },
  };
  const nice = (low, high, count = 5) => {
    const step = 10 ** Math.floor(Math.log10((high - low) / count));
    const wide = [1, 2, 5, 10].map((k) => k * step).find((k) => (high - low) / k <= count) || step * 10;
    const ticks = [];
    for (let t = Math.ceil(low / wide) * wide; t <= high * (1 + 1e-9); t += wide) {
      ticks.push(Number(t.toPrecision(12)));
    }
    return ticks;
  };
  const sizesBetween = (low, high) => {
    const ticks = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p += 1) {
      for (const k of [1, 2, 5]) ticks.push(k * 10 ** p);
    }
    return ticks.filter((t) => t >= low * 0.999 && t <= high * 1.001);
  };
  const interpolate = (xs, ys, x) => {
    if (x <= xs[0]) return ys[0];
    for (let i = 1; i < xs.length; i += 1) {
      if (x <= xs[i]) {
        const share = (x - xs[i - 1]) / (xs[i] - xs[i - 1]);
        return ys[i - 1] + share * (ys[i] - ys[i - 1]);
      }
    }
    return ys[ys.length - 1];
  };

  // --- charts of curves
  class Chart {
    constructor(place, spec) {
      Object.assign(this, { place, spec, scale: spec.scale || "log" });
      this.box = { width: 760, height: 420, left: 62, right: 16, top: 14, bottom: 50 };
      this.markN = spec.slider ? spec.slider.value : null;
      this.target = spec.target ? spec.target.value : null;
      this.controls();
      this.svg = draw("svg", {
        viewBox: `0 0 ${this.box.width} ${this.box.height}`,
        role: "img",
        tabindex: "0",
        "aria-label": `${spec.title}. Arrow keys move from point to point.`,
        class: "chart",
      });
      place.prepend(this.svg);
      this.tip = make("div", { class: "tip", hidden: "" }, place);
      this.live = make("p", { class: "unseen", "aria-live": "polite" }, place);
      this.paint();
      this.listen();
      chosen.listeners.push(() => this.paint());
    }

    controls() {
      const { spec, place } = this;
      const bar = make("div", { class: "controls" }, place);
      if (spec.scales.length > 1) {
        const field = make("fieldset", {}, bar);
        make("legend", {}, field, "Horizontal axis");
        for (const name of spec.scales) {
          const label = make("label", {}, field);
          const words = { linear: "n", log: "log n", root: "n^−½" };
          const radio = make("input", { type: "radio", name: `${spec.id}-scale`, value: name }, label);
          radio.checked = name === this.scale;
          label.append(` ${words[name]}`);
          radio.addEventListener("change", () => {
            this.scale = name;
            this.paint();
          });
        }
      }
      const legend = make("div", { class: "legend", role: "group", "aria-label": "Learners" }, bar);
      spec.series.forEach((series, i) => {
        const button = make(
          "button",
          { type: "button", "data-learner": series.name, "aria-pressed": "false", title: series.name },
          legend,
        );
        make("span", { class: "dot", style: `--colour: var(--series-${i % 10})` }, button);
        make("bdi", {}, button, series.name);
      });
      if (spec.slider) this.slider(bar);
      if (spec.target) this.targetField(bar);
    }

    slider(bar) {
      const { spec } = this;
      const { low, high, value } = spec.slider;
      const label = make("label", { class: "wide" }, bar, "Training size N ");
      const range = make("input", { type: "range", min: "0", max: "1000", step: "1" }, label);
      const shown = make("output", {}, label);
      const place = (n) => (1000 * Math.log(n / low)) / Math.log(high / low);
      range.value = String(Math.round(place(value)));
      this.readings = make("div", { class: "readings", role: "status" }, bar);
      const update = () => {
        const n = low * (high / low) ** (Number(range.value) / 1000);
        this.markN = Number(n.toPrecision(3));
        shown.textContent = about(this.markN);
        range.setAttribute("aria-valuetext", `N = ${about(this.markN)}`);
        this.readN();
        if (this.svg) this.paint();
      };
      range.addEventListener("input", update);
      this.atN = update;
      update();
    }

    readN() {
      const { spec } = this;
      const table = make("table", { class: "reading" });
      const head = make("tr", {}, make("thead", {}, table));
      for (const name of ["learner", `error e_N at N = ${about(this.markN)}`, "data-reliance β_N"]) {
        make("th", { scope: "col" }, head, name);
      }
      const body = make("tbody", {}, table);
      for (const series of spec.series.filter((s) => s.answers)) {
        const row = make("tr", { "data-learner": series.name }, body);
        row.classList.toggle("chosen", series.name === chosen.name);
        make("bdi", {}, make("th", { scope: "row" }, row), series.name);
        const at = (key) => interpolate(series.answers.logn, series.answers[key], Math.log(this.markN));
        for (const what of ["error", "reliance"]) {
          const [value, low, high] = [what, `${what}_low`, `${what}_high`].map(at);
          make("td", {}, row, `${number(value)} [${number(low)}, ${number(high)}]`);
        }
      }
      this.readings.replaceChildren(table);
    }

    targetField(bar) {
      const { spec } = this;
      const { low, high, value } = spec.target;
      const label = make("label", { class: "wide" }, bar, `Target ${spec.y.word} `);
      this.field = make(
        "input",
        { type: "number", min: low, max: high, step: "any", value: Number(value.toPrecision(3)) },
        label,
      );
      this.needs = make("div", { class: "readings", role: "status" }, bar);
      this.field.addEventListener("input", () => {
        const asked = Number(this.field.value);
        if (Number.isFinite(asked) && asked > 0) this.aim(asked, false);
      });
      this.readTarget();
    }

    aim(value, write = true) {
      this.target = value;
      if (write) this.field.value = String(Number(value.toPrecision(3)));
      this.readTarget();
      this.paint();
    }

    readTarget() {
      const { spec } = this;
      const table = make("table", { class: "reading" });
      const head = make("tr", {}, make("thead", {}, table));
      const asked = `samples for ${spec.y.word} ${number(this.target, 3)}`;
      for (const name of ["learner", asked]) make("th", { scope: "col" }, head, name);
      const body = make("tbody", {}, table);
      for (const series of spec.series.filter((s) => s.needs)) {
        const row = make("tr", { "data-learner": series.name }, body);
        row.classList.toggle("chosen", series.name === chosen.name);
        make("bdi", {}, make("th", { scope: "row" }, row), series.name);
        make("td", {}, row, this.needed(series.needs));
      }
      this.needs.replaceChildren(table);
    }

    needed(needs) {
      const { target } = this;
      const first = needs.target[0];
      const last = needs.target[needs.target.length - 1];
      if (target < Math.min(first, last) || target > Math.max(first, last)) return "not computed here";
      const order = needs.target.map((_, i) => i).sort((a, b) => needs.target[a] - needs.target[b]);
      const xs = order.map((i) => needs.target[i]);
      const of = (key) => {
        const ys = order.map((i) => Math.log(finite(needs[key][i])));
        const value = interpolate(xs, ys, target);
        return Number.isNaN(value) ? Infinity : Math.exp(value);
      };
      const [value, low, high] = ["n", "low", "high"].map(of);
      if (!Number.isFinite(value)) return `no amount searched; at least ${about(low)}`;
      return `${about(value)} [${about(low)}, ${about(high)}]`;
    }

    frame() {
      const { spec, box } = this;
      const to = SCALES[this.scale].to;
      let [low, high] = spec.x.range;
      if (this.scale === "linear") low = 0;
      const a = this.scale === "root" ? to(low) : to(Math.max(low, this.scale === "log" ? low : 0));
      const b = this.scale === "root" ? 0 : to(high);
      const [bottom, top] = spec.y.range;
      this.X = (n) => box.left + ((to(n) - a) / (b - a)) * (box.width - box.left - box.right);
      this.Y = (v) =>
        box.height - box.bottom - ((v - bottom) / (top - bottom)) * (box.height - box.top - box.bottom);
      this.unY = (y) =>
        bottom + ((box.height - box.bottom - y) / (box.height - box.top - box.bottom)) * (top - bottom);
      return { low: this.scale === "linear" ? 0 : low, high };
    }

    paint() {
      const { spec, box, svg } = this;
      const { low, high } = this.frame();
      svg.replaceChildren();
      this.axes(low, high);
      const clip = `${spec.id}-inside`;
      const inside = draw("clipPath", { id: clip }, draw("defs", {}, svg));
      draw(
        "rect",
        {
          x: box.left,
          y: box.top,
          width: box.width - box.left - box.right,
          height: box.height - box.top - box.bottom,
        },
        inside,
      );
      const area = draw("g", { "clip-path": `url(#${clip})` }, svg);
      const order = spec.series.map((_, i) => i);
      if (chosen.name) order.sort((i, j) => (spec.series[i].name === chosen.name) - (spec.series[j].name === chosen.name));
      for (const i of order) this.curve(area, spec.series[i], i);
      this.marks(area);
      this.points = order.flatMap((i) =>
        spec.series[i].points.map((p) => ({ ...p, series: spec.series[i], i })),
      );
      this.halo = draw("circle", { r: "7", class: "halo", visibility: "hidden" }, svg);
    }

    axes(low, high) {
      const { spec, box, svg } = this;
      const grid = draw("g", { class: "grid", "aria-hidden": "true" }, svg);
      const bottom = box.height - box.bottom;
      const ticks = this.scale === "linear" ? nice(low, high, 7) : sizesBetween(Math.max(low, 1), high);
      let last = -Infinity;
      const shown = this.scale === "root" ? ticks.slice().sort((a, b) => b - a) : ticks;
      for (const t of shown) {
        const x = this.X(Math.max(t, 1e-9));
        if (Math.abs(x - last) < 46) continue;
        last = x;
        draw("line", { x1: x, x2: x, y1: box.top, y2: bottom }, grid);
        draw("text", { x, y: bottom + 18, "text-anchor": "middle" }, grid, number(t));
      }
      if (this.scale === "root") {
        draw("text", { x: this.X(Infinity), y: bottom + 18, "text-anchor": "middle" }, grid, "∞");
      }
      for (const t of nice(spec.y.range[0], spec.y.range[1], 6)) {
        const y = this.Y(t);
        draw("line", { x1: box.left, x2: box.width - box.right, y1: y, y2: y }, grid);
        draw("text", { x: box.left - 8, y: y + 4, "text-anchor": "end" }, grid, number(t));
      }
      const middle = (box.left + box.width - box.right) / 2;
      draw("text", { x: middle, y: box.height - 10, "text-anchor": "middle", class: "name" }, grid, SCALES[this.scale].label);
      const across = (box.top + bottom) / 2;
      draw(
        "text",
        { x: 16, y: across, "text-anchor": "middle", transform: `rotate(-90 16 ${across})`, class: "name" },
        grid,
        spec.y.label,
      );
    }

    curve(area, series, i) {
      const group = draw(
        "g",
        { class: "series", "data-learner": series.name, style: `--colour: var(--series-${i % 10})` },
        area,
      );
      group.classList.toggle("chosen", series.name === chosen.name);
      const path = (ns, values) =>
        ns.map((n, k) => `${this.X(n).toFixed(1)},${this.Y(values[k]).toFixed(1)}`);
      const { line } = series;
      if (line) {
        const back = path(line.n, line.low).reverse();
        draw("path", { class: "band", d: `M${[...path(line.n, line.high), ...back].join("L")}Z` }, group);
        draw("path", { class: "line", d: `M${path(line.n, line.value).join("L")}` }, group);
      }
      for (const point of series.points) {
        draw("circle", { cx: this.X(point.n), cy: this.Y(point.value), r: "3.5" }, group);
      }
    }

    marks(area) {
      const { box } = this;
      if (this.markN !== null && this.markN !== undefined) {
        const x = this.X(this.markN);
        draw("line", { class: "mark", x1: x, x2: x, y1: box.top, y2: box.height - box.bottom }, area);
      }
      if (this.target !== null && this.target !== undefined) {
        const y = this.Y(this.target);
        draw("line", { class: "mark", x1: box.left, x2: box.width - box.right, y1: y, y2: y }, area);
        draw(
          "line",
          { class: "handle", x1: box.left, x2: box.width - box.right, y1: y, y2: y, "stroke-width": "16" },
          area,
        );
      }
    }

    show(index) {
      const point = this.points[index];
      if (!point) return;
      this.at = index;
      const [x, y] = [this.X(point.n), this.Y(point.value)];
      this.halo.setAttribute("cx", x);
      this.halo.setAttribute("cy", y);
      this.halo.setAttribute("visibility", "visible");
      const more = point.label ? `, ${point.label}` : "";
      const text = `${point.series.name}, n = ${number(point.n)}${more}: ${number(point.value)}`;
      this.tip.textContent = text;
      this.tip.hidden = false;
      const wide = this.svg.getBoundingClientRect().width / this.box.width;
      const left = Math.min(Math.max(x * wide, 90), this.svg.getBoundingClientRect().width - 90);
      this.tip.style.left = `${left}px`;
      this.tip.style.top = `${Math.max(0, y * wide - 42)}px`;
      return text;
    }

    hide() {
      this.tip.hidden = true;
      this.halo.setAttribute("visibility", "hidden");
    }

    place_of(event) {
      const frame = this.svg.getBoundingClientRect();
      const wide = this.box.width / frame.width;
      return [(event.clientX - frame.left) * wide, (event.clientY - frame.top) * wide];
    }

    listen() {
      const { svg } = this;
      let dragging = false;
      svg.addEventListener("pointermove", (event) => {
        const [x, y] = this.place_of(event);
        if (dragging) {
          const [low, high] = this.spec.y.range;
          this.aim(Math.min(Math.max(this.unY(y), low), high));
          return;
        }
        let best = -1;
        let near = 18 ** 2;
        this.points.forEach((p, i) => {
          if (chosen.name && p.series.name !== chosen.name) return;
          const distance = (this.X(p.n) - x) ** 2 + (this.Y(p.value) - y) ** 2;
          if (distance < near) [best, near] = [i, distance];
        });
        if (best >= 0) this.show(best);
        else this.hide();
      });
      svg.addEventListener("pointerleave", () => !dragging && this.hide());
      svg.addEventListener("pointerdown", (event) => {
        if (!event.target.classList.contains("handle")) return;
        dragging = true;
        svg.setPointerCapture(event.pointerId);
        event.preventDefault();
      });
      svg.addEventListener("pointerup", () => {
        dragging = false;
      });
      svg.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const count = this.points.length;
        const next = (((this.at ?? (step > 0 ? -1 : 0)) + step) % count + count) % count;
        this.live.textContent = this.show(next);
      });
      svg.addEventListener("blur", () => this.hide());
    }
  }

  // --- tables that can be sorted
  const sortable = (table) => {
    const heads = $$("thead th", table);
    heads.forEach((head, column) => {
      const button = $("button", head);
      if (!button) return;
      button.addEventListener("click", () => {
        const rising = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", rising ? "ascending" : "descending");
        const body = $("tbody", table);
        const key = (row) => {
          const cell = row.children[column];
          const value = cell.dataset.value ?? cell.textContent;
          const asNumber = Number(value);
          return value !== "" && !Number.isNaN(asNumber) ? asNumber : value;
        };
        const rows = $$("tr", body).map((row) => [key(row), row]);
        rows.sort(([a], [b]) => {
          const known = (v) => (v === "" ? 1 : 0);
          if (known(a) !== known(b)) return known(a) - known(b); // what is missing comes last
          const order = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
          return rising ? order : -order;
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  };

  // --- the runs, a page of them at a time
  const PAGE = 50;
  const runs = () => {
    const place = $("#runs-table");
    const data = read("runs-data");
    if (!place || !data) return;
    const { names, columns, count } = data;
    const cell = (name, i) => {
      const column = columns[name];
      return column.words ? column.words[column.values[i]] : column.values[i];
    };
    let rows = Array.from({ length: count }, (_, i) => i);
    let page = 0;
    const bar = make("div", { class: "controls" });
    const label = make("label", {}, bar, "Show runs that contain ");
    const asked = make("input", { type: "search" }, label);
    const table = make("table", { class: "sortable" });
    const head = make("tr", {}, make("thead", {}, table));
    const body = make("tbody", {}, table);
    const foot = make("div", { class: "controls" });
    const back = make("button", { type: "button" }, foot, "Previous");
    const said = make("span", { role: "status" }, foot);
    const on = make("button", { type: "button" }, foot, "Next");
    const show = () => {
      const pages = Math.max(1, Math.ceil(rows.length / PAGE));
      page = Math.min(Math.max(page, 0), pages - 1);
      body.replaceChildren(
        ...rows.slice(page * PAGE, (page + 1) * PAGE).map((i) => {
          const row = make("tr");
          if (columns.learner) row.dataset.learner = cell("learner", i);
          row.classList.toggle("chosen", row.dataset.learner === chosen.name);
          for (const name of names) {
            const value = cell(name, i);
            const text = typeof value === "number" ? number(value) : (value ?? "");
            make("bdi", {}, make("td", typeof value === "number" ? { class: "number" } : {}, row), text);
          }
          return row;
        }),
      );
      said.textContent = ` ${rows.length.toLocaleString("en")} of ${count.toLocaleString("en")} runs, page ${page + 1} of ${pages} `;
      back.disabled = page === 0;
      on.disabled = page === pages - 1;
    };
    names.forEach((name) => {
      const th = make("th", { scope: "col" }, head);
      const button = make("button", { type: "button" }, th, name);
      button.addEventListener("click", () => {
        const rising = th.getAttribute("aria-sort") !== "ascending";
        $$("th", head).forEach((h) => h.removeAttribute("aria-sort"));
        th.setAttribute("aria-sort", rising ? "ascending" : "descending");
        const values = Array.from({ length: count }, (_, i) => cell(name, i));
        rows.sort((i, j) => {
          const [a, b] = [values[i], values[j]];
          if ((a === null) !== (b === null)) return a === null ? 1 : -1;
          return (rising ? 1 : -1) * (a < b ? -1 : a > b ? 1 : i - j);
        });
        page = 0;
        show();
      });
    });
    const filter = () => {
      const word = asked.value.toLowerCase();
      const hits = (i) => names.some((name) => String(cell(name, i) ?? "").toLowerCase().includes(word));
      rows = Array.from({ length: count }, (_, i) => i).filter((i) => !word || hits(i));
      page = 0;
      show();
    };
    asked.addEventListener("input", filter);
    back.addEventListener("click", () => {
      page -= 1;
      show();
    });
    on.addEventListener("click", () => {
      page += 1;
      show();
    });
    chosen.listeners.push(show);
    const wide = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" });
    wide.append(table);
    place.replaceChildren(bar, wide, foot);
    show();
  };

  // --- light and dark
  const theme = () => {
    const button = $("#theme");
    if (!button) return;
    const dark = () => {
      const own = document.documentElement.dataset.theme;
      return own ? own === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    };
    const say = () => {
      button.textContent = dark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`);
    };
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = dark() ? "light" : "dark";
      say();
    });
    say();
  };

  const start = () => {
    theme();
    for (const place of $$("[data-chart]")) {
      const spec = read(place.dataset.chart);
      if (spec) new Chart(place, spec);
      place.classList.add("alive");
    }
    $$("table.sortable").forEach(sortable);
    runs();
    document.body.dataset.ready = "yes";
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
