// --- charts of curves
const MOST_NAMES = 8;
const LONGEST_NAME = 26;
class Chart {
  constructor(place, spec) {
    Object.assign(this, { place, spec, scale: spec.scale || "log" });
    for (const series of spec.series) {
      for (const part of Object.values(series)) {
        for (const key of part && part.value ? Object.keys(part) : []) part[key] = numbers(part[key]);
      }
    }
    const picture = make("div", { class: "picture" }, place);
    this.axisSwitch(picture);
    // Three layers, so that what moves is painted without painting the curves again.
    const layers = make("div", { class: "layers" }, picture);
    this.grid = draw("svg", { class: "grid", "aria-hidden": "true" }, layers);
    const many = spec.series.length > MANY ? "many" : "";
    this.curves = draw("svg", { class: `curves ${many}`, "aria-hidden": "true" }, layers);
    this.svg = draw("svg", {
      role: "img",
      tabindex: "0",
      "aria-label": `${spec.title}. Arrow keys, Home and End move from point to point.`,
      class: "chart",
    }, layers);
    this.tip = make("div", { class: "tip", hidden: "", dir: "auto" }, picture);
    this.live = make("p", { class: "unseen", "aria-live": "polite" }, picture);
    this.panel = new Panel(this, place, spec);
    this.listen();
    new ResizeObserver(() => this.fit()).observe(picture);
    this.fit();
    chosen.listeners.push(() => this.front());
  }

  axisSwitch(picture) {
    const { spec } = this;
    if (!spec.scales || spec.scales.length < 2) return;
    const field = make("fieldset", {}, make("div", { class: "controls" }, picture));
    make("legend", {}, field, "Horizontal axis");
    for (const name of spec.scales) {
      const label = make("label", {}, field);
      const radio = make("input", { type: "radio", name: `${spec.id}-scale`, value: name }, label);
      radio.checked = name === this.scale;
      label.append(` ${SCALES[name].words}`);
      if (SCALES[name].power) make("sup", {}, label, SCALES[name].power);
      radio.addEventListener("change", () => {
        this.scale = name;
        this.paint();
      });
    }
  }

  fit() {
    const width = Math.round(this.svg.parentElement.clientWidth);
    if (!width || (this.box && this.box.width === width)) return;
    const height = Math.round(Math.min(Math.max(width * 0.62, 270), 400));
    this.box = { width, height, right: this.nameRoom(width), top: 10, bottom: 46 };
    // The longest number of the vertical axis stands beside its name.
    this.heights = nice(...this.spec.y.range, Math.round((height - this.box.top - this.box.bottom) / 55), 3);
    this.box.left = Math.max(58, 30 + Math.max(...this.heights.map((v) => inkOf(tick(v)))));
    for (const layer of [this.grid, this.curves, this.svg]) layer.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.paint();
  }

  // Names stand at the ends of their lines where there is room; the legend has them in any case.
  nameRoom(width) {
    const names = this.spec.series.map(({ name }) => clipped(name, LONGEST_NAME).length);
    this.named = width >= 460 && names.length <= MOST_NAMES && this.spec.series.every((s) => s.line);
    return this.named ? Math.min(14 + 7.9 * Math.max(...names), 0.34 * width) : 14;
  }

  frame() {
    const { spec, box } = this;
    const { to } = SCALES[this.scale];
    const [low, high] = spec.x.range;
    const a = this.scale === "linear" && low > 0 && spec.scales ? 0 : to(low);
    const b = this.scale === "root" ? 0 : to(high);
    const [bottom, top] = spec.y.range;
    const wide = box.width - box.left - box.right;
    const tall = box.height - box.top - box.bottom;
    this.X = (n) => box.left + ((to(n) - a) / (b - a)) * wide;
    this.Y = (v) => box.top + ((top - v) / (top - bottom)) * tall;
    this.unY = (y) => top - ((y - box.top) / tall) * (top - bottom);
    return { x: box.left, y: box.top, width: wide, height: tall };
  }

  paint() {
    const { spec, svg } = this;
    const inner = this.frame();
    for (const layer of [this.grid, this.curves, svg]) layer.replaceChildren();
    this.axes(inner);
    const clip = draw("clipPath", { id: `${spec.id}-inside` }, draw("defs", {}, this.curves));
    draw("rect", { x: inner.x - 5, y: inner.y - 5, width: inner.width + 10, height: inner.height + 10 }, clip);
    const area = draw("g", { "clip-path": `url(#${spec.id}-inside)` }, this.curves);
    this.groups = new Map();
    this.points = [];
    for (const series of spec.series) this.curve(area, series, inner);
    this.above = draw("g", { class: "above", "clip-path": `url(#${spec.id}-inside)` }, svg);
    this.lines = draw("g", {}, svg);
    this.halo = draw("circle", { r: "7", class: "halo", visibility: "hidden" }, svg);
    if (this.named) this.names(inner);
    this.marks();
    this.front();
  }

  names(inner) {
    const { grid } = this;
    const right = inner.x + inner.width;
    const [low, high] = this.spec.x.range;
    const found = this.spec.series.map((series) => {
      const { line } = series;
      const ns = line.n || this.spec.n;
      const end = this.scale === "root" && !line.n ? ns[ns.length - 1] : Math.min(high, ns[ns.length - 1]);
      const y = this.Y(readAt(ns, line.value, Math.max(end, low), this.spec.between));
      return { series, y: Math.min(Math.max(y, inner.y + 6), inner.y + inner.height - 4) };
    });
    const shown = found.filter(({ y }) => Number.isFinite(y)).sort((a, b) => a.y - b.y);
    // Moved apart where they would touch: down from the top, then up from the bottom.
    shown.forEach((one, i) => {
      if (i) one.y = Math.max(one.y, shown[i - 1].y + 15);
    });
    for (let i = shown.length - 1; i >= 0; i -= 1) {
      const lowest = i === shown.length - 1 ? inner.y + inner.height : shown[i + 1].y - 15;
      shown[i].y = Math.min(shown[i].y, lowest);
    }
    for (const { series, y } of shown) {
      const place = { x: right + 8, y: y + 4, class: "at-line", style: styleOf(series) };
      draw("text", place, grid, clipped(series.name, LONGEST_NAME));
    }
  }

  axes(inner) {
    const { spec, grid } = this;
    const [low, high] = spec.x.range;
    const bottom = inner.y + inner.height;
    const right = inner.x + inner.width;
    const upright = (x, text) => {
      draw("line", { x1: x, x2: x, y1: inner.y, y2: bottom }, grid);
      draw("text", { x, y: bottom + 17, "text-anchor": "middle" }, grid, text);
    };
    const start = spec.scales && low > 0 ? 0 : low;
    const steps = spec.slider && spec.slider.steps ? Math.min(Math.round(inner.width / 90), high - low || 1) : Math.round(inner.width / 90);
    const ticks = this.scale === "linear" ? nice(start, high, Math.max(1, steps)) : sizesBetween(low, high);
    if (this.scale === "root") upright(right, "∞");
    let left = this.scale === "root" ? right - 24 : Infinity; // where the label before begins
    for (const t of ticks.reverse()) {
      const [x, text] = [this.X(t), tick(t)];
      const half = Math.max(24, 5 + inkOf(text) / 2);
      if (x + half > left) continue;
      left = x - half;
      upright(x, text);
    }
    for (const t of this.heights) {
      const y = this.Y(t);
      draw("line", { x1: inner.x, x2: right, y1: y, y2: y }, grid);
      draw("text", { x: inner.x - 8, y: y + 4, "text-anchor": "end" }, grid, tick(t));
    }
    if (spec.x.supported) this.unsupported(inner);
    const name = { "text-anchor": "middle", class: "name" };
    const label = spec.x.label || SCALES[this.scale].label;
    draw("text", { ...name, x: (inner.x + right) / 2, y: this.box.height - 8 }, grid, label);
    const across = (inner.y + bottom) / 2;
    draw("text", { ...name, x: 14, y: across, transform: `rotate(-90 14 ${across})` }, grid, spec.y.label);
  }

  unsupported(inner) {
    const x = this.X(this.spec.x.supported);
    const right = inner.x + inner.width;
    if (x >= right) return;
    draw("rect", { class: "beyond", x, y: inner.y, width: right - x, height: inner.height }, this.grid);
    const [across, down] = [x + 13, inner.y + 4];
    draw("text", { x: across, y: down, "text-anchor": "end", transform: `rotate(-90 ${across} ${down})` }, this.grid, "4 × largest size");
  }

  curve(area, series, inner) {
    const { name, line } = series;
    const look = { class: `series ${dashOf(series)}`, "data-learner": name, style: styleOf(series) };
    const group = draw("g", look, area);
    this.groups.set(name, group);
    const far = 10 * this.box.height; // infinitely far, for a path
    const at = (n, v) => `${this.X(n).toFixed(1)},${Math.min(Math.max(this.Y(v), -far), far).toFixed(1)}`;
    if (line) {
      const all = line.n || this.spec.n;
      const along = (values, ns) =>
        ns.map((n) => [n, readAt(all, values, n, this.spec.between)]).filter(([, v]) => !Number.isNaN(v)).map(([n, v]) => at(n, v));
      const ns = this.steps(all);
      if (line.low && this.spec.series.length <= MANY) {
        const edges = [...along(line.high, ns), ...along(line.low, ns).reverse()];
        if (edges.length) draw("path", { class: "band", d: `M${edges.join("L")}Z` }, group);
      }
      // Solid over the sizes that were measured, dashed where the curve is extrapolated.
      const [first, last] = series.measured || [-Infinity, Infinity];
      const parts = [ns.filter((n) => n < first), ns.filter((n) => n >= first && n <= last), ns.filter((n) => n > last)];
      if (parts[0].length) parts[0].push(first);
      if (parts[2].length) parts[2].unshift(last);
      parts.forEach((part, i) => {
        const path = along(line.value, part);
        if (path.length) draw("path", { class: i === 1 ? "line" : "line outside", d: `M${path.join("L")}` }, group);
      });
    }
    const points = series.points.map((p) => ({ ...p, name, x: this.X(p.n), y: this.Y(p.value) }));
    points.sort((a, b) => a.n - b.n);
    if (!points.length) return;
    // One element however many points there are: a stroke with round ends at each of them.
    draw("path", { class: "points", d: points.map((p) => `M${p.x.toFixed(1)},${p.y.toFixed(1)}h0`).join("") }, group);
    this.points.push(points.filter((p) => p.x >= inner.x - 5 && p.x <= inner.x + inner.width + 5));
  }

  // Sizes at which a line is drawn: its own, and so many between that no corner is seen.
  steps(all) {
    const { to, from } = SCALES[this.scale];
    const [low, high] = this.spec.x.range;
    const [a, b] = [to(low), this.scale === "root" ? to(all[all.length - 1]) : to(high)];
    const count = this.spec.series.length > MANY ? 40 : 120;
    const even = Array.from({ length: count + 1 }, (_, i) => from(a + ((b - a) * i) / count));
    const own = all.filter((n) => n >= low && (this.scale === "root" || n <= high));
    const inside = (n) => n >= all[0] && n <= all[all.length - 1];
    return [...new Set([...even.filter(inside), ...own])].sort((m, n) => m - n);
  }

  marks() {
    const { box, lines } = this;
    if (!lines) return;
    const { markN, target } = this.panel;
    lines.replaceChildren();
    const [right, bottom] = [box.width - box.right, box.height - box.bottom];
    if (markN !== null) {
      const x = this.X(markN);
      draw("line", { class: "mark", "data-mark": "n", x1: x, x2: x, y1: box.top, y2: bottom }, lines);
    }
    if (target === null) return;
    const y = this.Y(target);
    if (y < box.top || y > bottom) return;
    const ends = { x1: box.left, x2: right, y1: y, y2: y };
    draw("line", { class: "mark", "data-mark": "target", ...ends }, lines);
    draw("circle", { class: "grip", cx: right, cy: y, r: 5 }, lines);
    draw("line", { class: "handle", ...ends, "stroke-width": "16" }, lines);
  }

  // The curves of the learner chosen and of the one under the mouse are drawn again above the
  // others, which are dimmed.
  front() {
    const names = [...new Set([this.hovered, chosen.name])].filter((name) => this.groups.has(name));
    this.above.replaceChildren(...names.map((name) => this.groups.get(name).cloneNode(true)).reverse());
    this.curves.classList.toggle("dim", names.length > 0);
  }

  hover(name) {
    if (this.hovered === name) return;
    this.hovered = name;
    this.panel.hovered(name);
    this.front();
  }

  say(text, x, y) {
    this.tip.textContent = text;
    this.tip.hidden = false;
    const wide = this.svg.clientWidth / this.box.width;
    const half = this.tip.offsetWidth / 2;
    const left = Math.min(Math.max(x * wide, half), Math.max(this.svg.clientWidth - half, half));
    const above = y * wide - this.tip.offsetHeight - 12;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${this.svg.offsetTop + (above > 0 ? above : y * wide + 14)}px`;
  }

  show(point) {
    this.halo.setAttribute("cx", point.x);
    this.halo.setAttribute("cy", point.y);
    this.halo.setAttribute("visibility", "visible");
    const more = point.label ? `, ${point.label}` : "";
    const value = ranged(point.value, point.low, point.high, this.spec.y.suffix).join(" ").trim();
    const text = `${clipped(point.name)}, ${this.spec.x.word} = ${number(point.n)}${more}: ${value}`;
    this.say(text, point.x, point.y);
    this.hover(point.name);
    return text;
  }

  hide() {
    this.tip.hidden = true;
    this.halo.setAttribute("visibility", "hidden");
    this.hover(null);
  }

  placeOf(event) {
    const frame = this.svg.getBoundingClientRect();
    const wide = this.box.width / frame.width;
    return [(event.clientX - frame.left) * wide, (event.clientY - frame.top) * wide];
  }

  nearest(x, y) {
    let [best, near] = [null, 14 ** 2];
    for (const points of this.points) {
      if (chosen.name !== null && points.length && points[0].name !== chosen.name) continue;
      for (const point of points) {
        const distance = (point.x - x) ** 2 + (point.y - y) ** 2;
        if (distance < near) [best, near] = [point, distance];
      }
    }
    return best;
  }

  nearestLine(x, y) {
    const [low, high] = this.spec.x.range;
    const [left, right] = [this.X(low), this.X(high)];
    if (x < left - 2 || x > right + 2) return null;
    const share = (x - left) / (right - left);
    const { to, from } = SCALES[this.scale];
    const n = from(to(low) + share * (to(high) - to(low)));
    let [best, near] = [null, 10];
    for (const { name, line } of this.spec.series) {
      if (!line || (chosen.name !== null && name !== chosen.name)) continue;
      const read = (values) => (values ? readAt(line.n || this.spec.n, values, n, this.spec.between) : undefined);
      const value = read(line.value);
      const distance = Math.abs(this.Y(value) - y);
      if (distance < near) [best, near] = [{ name, n, value, low: read(line.low), high: read(line.high) }, distance];
    }
    return best;
  }

  point(event) {
    const [x, y] = this.placeOf(event);
    const found = this.nearest(x, y);
    if (found) {
      this.show(found);
      return;
    }
    const line = this.nearestLine(x, y);
    if (!line) {
      this.hide();
      return;
    }
    this.halo.setAttribute("visibility", "hidden");
    this.hover(line.name);
    const value = ranged(line.value, line.low, line.high, this.spec.y.suffix).join(" ").trim();
    const at = this.spec.between === "smooth" ? about(line.n) : number(line.n, 3);
    this.say(`${clipped(line.name)}, ${this.spec.x.word} = ${at}, curve: ${value}`, x, y);
  }

  listen() {
    const { svg } = this;
    let dragging = false;
    svg.addEventListener("pointermove", (event) => {
      if (!dragging) {
        this.point(event);
        return;
      }
      const [low, high] = this.spec.y.range;
      this.panel.aim(Math.min(Math.max(this.unY(this.placeOf(event)[1]), low), high));
    });
    svg.addEventListener("pointerleave", () => !dragging && this.hide());
    svg.addEventListener("pointerdown", (event) => {
      if (!event.target.matches(".handle, .grip")) return;
      dragging = true;
      this.hide();
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    for (const end of ["pointerup", "pointercancel"]) {
      svg.addEventListener(end, () => {
        dragging = false;
      });
    }
    svg.addEventListener("click", (event) => {
      if (!event.target.matches(".handle, .grip") && this.groups.has(this.hovered)) choose(this.hovered);
    });
    svg.addEventListener("keydown", (event) => this.step(event));
    svg.addEventListener("blur", () => this.hide());
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.hide());
  }

  // Left and right along the points of a learner, to its first and last; up and down to the next learner.
  step(event) {
    const [along, over] =
      { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [0, 0];
    const end = { Home: 0, End: -1 }[event.key];
    if ((!along && !over && end === undefined) || !this.points.length) return;
    event.preventDefault();
    const turn = (value, count) => ((value % count) + count) % count;
    this.at = this.at ? [turn(this.at[0] + over, this.points.length), this.at[1] + along] : [0, 0];
    const points = this.points[this.at[0]];
    this.at[1] = turn(end ?? this.at[1], points.length);
    this.live.textContent = this.show(points[this.at[1]]);
  }
}
