// --- what stands beside a chart: the size N, the target, and the legend with what they give
const MANY = 12;
class Panel {
  constructor(chart, place, spec) {
    Object.assign(this, { chart, spec });
    this.markN = spec.slider ? spec.slider.value : null;
    this.target = spec.target ? spec.target.value : null;
    const panel = make("div", { class: "panel" }, place);
    place.classList.toggle("plain", !spec.slider && !spec.target);
    const bar = make("div", { class: "controls" }, panel);
    if (spec.slider) this.slider(bar);
    if (spec.target) this.targetField(bar);
    this.caution = make("p", { class: "hint", role: "status" }, panel);
    this.legend(panel, bar);
  }

  slider(bar) {
    const { n: sizes, label: words, steps } = this.spec.slider;
    const { word } = this.spec.x;
    const [low, high] = [sizes[0], sizes[sizes.length - 1]];
    const label = make("label", { class: "wide" }, bar, `${words} `);
    // Whole numbers one by one; sizes by equal factors; magnitudes by equal steps.
    const most = steps ? sizes.length - 1 : 1000;
    const byFactor = !steps && this.spec.scale === "log";
    const range = make("input", { type: "range", min: "0", max: most, step: "1" }, label);
    const field = make("input", { type: "number", min: low, max: high, step: steps ? "1" : "any", "aria-label": `${words} as a number` }, bar);
    const placeOf = (n) => {
      if (steps) return n - low;
      return high === low ? 0 : (1000 * (byFactor ? Math.log(n / low) / Math.log(high / low) : (n - low) / (high - low)));
    };
    const valueOf = (place) => {
      if (steps) return low + place;
      const n = byFactor ? low * (high / low) ** (place / 1000) : low + ((high - low) * place) / 1000;
      return place === 0 ? low : place === 1000 ? high : Number(n.toPrecision(byFactor ? 3 : 4));
    };
    const set = (n, writeRange, writeField) => {
      this.markN = Math.min(Math.max(steps ? Math.round(n) : n, low), high);
      if (writeRange) range.value = String(Math.round(placeOf(this.markN)));
      if (writeField) field.value = String(Number(this.markN.toPrecision(12))); // 0.3, not 0.30000000000000004
      range.setAttribute("aria-valuetext", `${word} = ${byFactor ? about(this.markN) : number(this.markN)}`);
      this.chart.marks();
      this.readN();
    };
    range.addEventListener("input", () => set(valueOf(Number(range.value)), false, true));
    field.addEventListener("input", () => {
      const asked = Number(field.value);
      const fits = field.value !== "" && asked >= low && asked <= high;
      this.check(field, fits, `${words}: between ${number(low)} and ${number(high)}.`);
      if (field.value !== "" && Number.isFinite(asked)) set(asked, true, false); // the nearest that can be shown
    });
    field.addEventListener("change", () => {
      field.removeAttribute("aria-invalid"); // what is shown instead; the hint stays
      set(this.markN, true, true);
    });
    this.startN = () => set(this.markN, true, true);
  }

  targetField(bar) {
    const { spec } = this;
    const unit = spec.y.suffix ? ` (${spec.y.suffix})` : "";
    const label = make("label", { class: "wide" }, bar, `Target ${spec.y.word}${unit} `);
    const value = Number(this.target.toPrecision(3));
    this.target = value;
    this.field = make("input", { type: "number", step: "any", value }, label);
    make("span", { class: "hint" }, bar, "an example: type another, or drag the dashed line");
    this.field.addEventListener("input", () => {
      const asked = Number(this.field.value);
      const least = spec.target.floor ?? -Infinity;
      const fits = this.field.value !== "" && Number.isFinite(asked) && asked >= least;
      this.check(this.field, fits, `Target: ${least === -Infinity ? "a number" : `at least ${number(least)}${spec.y.suffix || ""}`}.`);
      if (fits) this.aim(asked, false);
    });
    this.field.addEventListener("change", () => {
      this.field.removeAttribute("aria-invalid");
      this.field.value = String(this.target);
    });
  }

  // A value that cannot be shown is marked, and the hint says which can.
  check(field, fits, allowed) {
    if (fits) field.removeAttribute("aria-invalid");
    else field.setAttribute("aria-invalid", "true");
    this.allowed = fits ? "" : allowed;
    this.warn();
  }

  aim(value, write = true) {
    this.target = write ? Number(value.toPrecision(3)) : value;
    if (write) this.field.value = String(this.target);
    this.chart.marks();
    this.readTarget();
  }

  // The legend: a button for each learner and, where there is something to read off, its numbers.
  legend(panel, bar) {
    const { spec } = this;
    const list = make("div", { class: "legend", role: "group", "aria-label": "Learners" }, panel);
    this.list = list;
    const table = make("table", { class: "reading" }, list);
    if (spec.intervals) make("caption", {}, table, `In brackets: ${spec.intervals}.`);
    const head = make("tr", {}, make("thead", {}, table));
    const heading = (text = null) => make("button", { type: "button" }, make("th", { scope: "col" }, head), text);
    heading(spec.series.every((s) => s.tone) ? "quantity" : "learner");
    this.heads = (spec.columns || []).map(() => heading());
    if (spec.target) this.asked = heading();
    const body = make("tbody", {}, table);
    this.rows = spec.series.map((series) => this.legendRow(body, series));
    if (spec.series.length > MANY) this.search(bar, list);
    if (spec.slider) this.startN();
    if (spec.target) this.readTarget();
    sortable(table);
  }

  legendRow(body, series) {
    const { name } = series;
    const row = make("tr", { "data-learner": name }, body);
    const button = make(
      "button",
      { type: "button", "data-learner": name, "aria-pressed": "false", title: clipped(name, 300) },
      make("th", { scope: "row" }, row),
    );
    make("span", { class: `swatch ${dashOf(series)}`, style: styleOf(series) }, button);
    make("bdi", {}, button, name);
    const cell = (wanted) => (wanted ? make("td", {}, row) : null);
    const cells = { read: (this.spec.columns || []).map(() => cell(true)), needs: cell(this.spec.target) };
    row.addEventListener("pointerenter", () => this.chart.hover(name));
    row.addEventListener("pointerleave", () => this.chart.hover(null));
    return { row, ...cells };
  }

  search(bar, list) {
    list.tabIndex = 0;
    const label = make("label", { class: "wide" }, bar, "Find a learner ");
    const field = make("input", { type: "search" }, label);
    field.addEventListener("input", () => {
      const word = field.value.toLowerCase();
      this.rows.forEach(({ row }) => {
        row.hidden = !row.dataset.learner.toLowerCase().includes(word);
      });
    });
  }

  write(cell, value, low, high, say = null) {
    if (cell.childNodes.length !== 2) {
      cell.replaceChildren("");
      make("span", { class: "range" }, cell, "");
    }
    cell.dataset.value = Number.isNaN(value) ? "" : value;
    const known = !Number.isNaN(low) && !Number.isNaN(high);
    const [text, range] = say ? [say(value), known ? `[${say(low)}, ${say(high)}]` : ""] : ranged(value, low, high);
    cell.firstChild.data = `${text} `;
    cell.lastChild.textContent = range;
  }

  // What lies so far beyond the data that only the form of the curve speaks stands in italics.
  beyond(cell, n, series) {
    cell.classList.toggle("far", Number.isFinite(n) && n > series.supported);
  }

  warn() {
    const { notes, n } = this.spec.slider || {};
    const far = "In italics: beyond 4 times the largest size measured, which the data do not support.";
    const text = this.allowed || (notes ? notes[n.indexOf(this.markN)] : $(".far", this.list) ? far : "");
    if (this.caution.textContent !== text) this.caution.textContent = text;
  }

  readN() {
    const { spec, markN } = this;
    spec.columns.forEach(({ key, title }, column) => {
      this.heads[column].textContent = title.replace("{at}", number(markN));
      spec.series.forEach((series, i) => {
        const cell = this.rows[i].read[column];
        const part = series[key];
        this.beyond(cell, markN, series);
        if (!part) {
          cell.textContent = "–";
          return;
        }
        const ns = part.n || (key === "line" ? spec.n : spec.slider.n);
        const at = (values) => (values ? readAt(ns, values, markN, spec.between) : NaN);
        this.write(cell, at(part.value), at(part.low), at(part.high));
      });
    });
    this.warn();
  }

  readTarget() {
    const { spec } = this;
    this.asked.textContent = `samples for ${tick(this.target)}${spec.y.suffix || ""}`;
    const sign = spec.target.higher ? -1 : 1;
    const turned = (values) => (sign > 0 ? values : values.map((v) => -v));
    spec.series.forEach((series, i) => {
      const cell = this.rows[i].needs;
      const { line } = series;
      series.falling ??= {
        value: turned(line.value),
        low: turned(sign > 0 ? line.low : line.high),
        high: turned(sign > 0 ? line.high : line.low),
        first: spec.x.range[0],
      };
      const floor = spec.target.floor ?? -Infinity;
      const found =
        this.target <= floor
          ? { n: Infinity, low: Infinity, high: Infinity }
          : samplesFor(line.n || spec.n, series.falling, sign * this.target, series.worsens);
      this.beyond(cell, found.n, series);
      if (Number.isNaN(found.n)) {
        cell.dataset.value = "";
        cell.textContent = "none can be named";
      } else this.write(cell, found.n, found.low, found.high, about);
    });
    this.warn();
  }

  hovered(name) {
    for (const { row } of this.rows) row.classList.toggle("hovered", row.dataset.learner === name);
  }
}
