// Light and dark, and the beginning of everything.
// --- light and dark
const theme = () => {
  const button = $("#theme");
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
  button.hidden = false;
  say();
};

// --- contents: folded on narrow screens; the section that is being read is marked
const contents = () => {
  const list = $("#contents");
  const wide = matchMedia("(min-width: 70rem)");
  const fold = () => list.toggleAttribute("open", wide.matches);
  wide.addEventListener("change", fold);
  fold();
  const links = $$("a", list);
  const targets = links.map((link) => document.getElementById(link.hash.slice(1)));
  // A link that was followed stays marked until the reader moves on: a short section cannot reach the top of the screen.
  let followed = null;
  const mark = () => {
    const passed = targets.map((target, i) => (i && target.getBoundingClientRect().top > 90 ? -1 : i));
    const now = followed ?? (scrollY === 0 ? 0 : Math.max(...passed));
    links.forEach((link, i) => (i === now ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  };
  links.forEach((link, i) =>
    link.addEventListener("click", () => {
      if (!wide.matches) list.removeAttribute("open");
      followed = i;
      mark();
    }),
  );
  for (const kind of ["wheel", "touchmove", "keydown"]) addEventListener(kind, () => (followed = null), { passive: true });
  addEventListener("scroll", mark, { passive: true });
  addEventListener("resize", mark);
  mark();
};

const start = () => {
  theme();
  contents();
  for (const place of $$("[data-chart]")) {
    const spec = read(place.dataset.chart);
    place.classList.add("alive");
    place.classList.toggle("kept", Boolean(spec.kept));
    new Chart(place, spec);
  }
  $$("table.sortable").forEach(sortable);
  const data = read("runs-data");
  if (data) new Runs($("#runs-table"), data);
  addEventListener("beforeprint", () => $$("main details").forEach((d) => d.setAttribute("open", "")));
  document.body.dataset.ready = "yes";
};
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
