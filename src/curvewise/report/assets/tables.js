// Tables that can be sorted, and the runs.
// --- tables that can be sorted: numbers as numbers, words as people sort them, nothing last
const words = new Intl.Collator("en", { numeric: true });
const compare = (a, b, rising) => {
  const missing = (v) => v === null || v === undefined || v === "" || v === "–" || Number.isNaN(v);
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const order =
    typeof a === "number" && typeof b === "number"
      ? Math.sign(a - b) || 0
      : typeof a === typeof b
        ? words.compare(a, b)
        : typeof a === "number"
          ? -1
          : 1;
  return rising ? order : -order;
};
const turnHead = (heads, head) => {
  const rising = head.getAttribute("aria-sort") !== "ascending";
  heads.forEach((h) => h.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  return rising;
};
const sortable = (table) => {
  const heads = $$("thead th", table);
  heads.forEach((head, column) => {
    $("button", head)?.addEventListener("click", () => {
      const rising = turnHead(heads, head);
      const body = $("tbody", table);
      const key = (row) => {
        const { dataset, textContent } = row.children[column];
        return dataset.value === undefined ? textContent : dataset.value === "" ? NaN : Number(dataset.value);
      };
      const rows = $$("tr", body).map((row) => [key(row), row]);
      rows.sort(([a], [b]) => compare(a, b, rising));
      body.append(...rows.map(([, row]) => row));
    });
  });
};

const save = (name, text) => {
  const place = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  make("a", { href: place, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(place), 1000);
};

// --- the runs, a page of them at a time
const PAGE = 50;
class Runs {
  constructor(place, { names, columns, count }) {
    Object.assign(this, { names, columns, count, page: 0, word: "" });
    this.order = Array.from({ length: count }, (_, i) => i);
    const bar = make("div", { class: "controls" });
    const label = make("label", {}, bar, "Show runs that contain ");
    const asked = make("input", { type: "search" }, label);
    asked.addEventListener("input", () => {
      this.word = asked.value.toLowerCase();
      this.select();
    });
    const table = make("table");
    const head = make("tr", {}, make("thead", {}, table));
    for (const name of names) this.head(head, name);
    this.body = make("tbody", {}, table);
    const foot = make("div", { class: "controls" });
    this.back = this.turner(foot, "Previous", -1);
    this.said = make("span", { role: "status" }, foot);
    this.on = this.turner(foot, "Next", 1);
    const saved = make("button", { type: "button" }, foot, "Save as CSV");
    saved.addEventListener("click", () => save("runs.csv", this.csv()));
    const wide = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All runs" });
    wide.append(table);
    place.replaceChildren(bar, wide, foot);
    chosen.listeners.push(() => this.select());
    this.select();
  }

  turner(foot, text, by) {
    const button = make("button", { type: "button" }, foot, text);
    button.addEventListener("click", () => {
      this.page += by;
      this.show();
    });
    return button;
  }

  head(row, name) {
    const th = make("th", { scope: "col" }, row);
    if (!this.columns[name].words) th.classList.add("number");
    make("button", { type: "button" }, th, name).addEventListener("click", () => {
      const rising = turnHead($$("th", row), th);
      const ranks = this.ranks(name);
      this.order.sort((i, j) => compare(ranks[i], ranks[j], rising) || i - j);
      this.select();
    });
  }

  // Words are sorted once each, not once for each run.
  ranks(name) {
    const column = this.columns[name];
    if (!column.words) return column.values.map(finite);
    const places = column.words.map((_, i) => i);
    places.sort((a, b) => words.compare(column.words[a], column.words[b]));
    const rank = new Array(places.length);
    places.forEach((place, i) => {
      rank[place] = column.words[place] === "" ? null : i;
    });
    return column.values.map((v) => rank[v]);
  }

  cell(name, i) {
    const column = this.columns[name];
    return column.words ? column.words[column.values[i]] : finite(column.values[i]);
  }

  text(name, i) {
    const value = this.cell(name, i);
    if (Number.isInteger(value)) return String(value); // seeds are not rounded
    return typeof value === "number" ? number(value) : value || "–";
  }

  select() {
    const { word, names, columns } = this;
    if (word) {
      this.texts ??= Array.from({ length: this.count }, (_, i) =>
        names.map((name) => `${this.cell(name, i) ?? ""}\n${this.text(name, i)}`).join("\n").toLowerCase(),
      );
    }
    this.rows = word ? this.order.filter((i) => this.texts[i].includes(word)) : this.order;
    if (chosen.name !== null && columns.learner) {
      const own = (i) => this.cell("learner", i) === chosen.name;
      this.rows = [...this.rows.filter(own), ...this.rows.filter((i) => !own(i))];
    }
    this.page = 0;
    this.show();
  }

  show() {
    const pages = Math.max(1, Math.ceil(this.rows.length / PAGE));
    this.body.replaceChildren(
      ...this.rows.slice(this.page * PAGE, (this.page + 1) * PAGE).map((i) => this.row(i)),
    );
    mark(this.body);
    const [found, all] = [this.rows.length, this.count].map((k) => k.toLocaleString("en"));
    this.said.textContent = `${found} of ${all} runs, page ${this.page + 1} of ${pages}`;
    this.back.disabled = this.page === 0;
    this.on.disabled = this.page === pages - 1;
  }

  // Those that are found, in the order shown, with all digits that the page has.
  csv() {
    // A text that a spreadsheet would compute gets an apostrophe, as in the exported file.
    const formula = (text) => /^([\t\r\n]|\s*[=+\-@])/.test(text) && Number.isNaN(Number(text));
    const quoted = (value) => {
      const text = String(value ?? "").replaceAll('"', '""');
      return `"${formula(text) ? "'" : ""}${text}"`;
    };
    const plain = (value) => (typeof value === "number" ? String(value) : quoted(value));
    const lines = this.rows.map((i) => this.names.map((name) => plain(this.cell(name, i))).join(","));
    return [this.names.map(quoted).join(","), ...lines, ""].join("\r\n");
  }

  row(i) {
    const row = make("tr", this.columns.learner ? { "data-learner": this.cell("learner", i) } : {});
    for (const name of this.names) {
      const cell = make("td", this.columns[name].words ? {} : { class: "number" }, row);
      make("bdi", {}, cell, this.text(name, i));
    }
    return row;
  }
}
