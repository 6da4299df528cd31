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

const start = () => {
  theme();
  for (const place of $$("[data-chart]")) {
    const spec = read(place.dataset.chart);
    place.classList.add("alive");
    place.classList.toggle("kept", Boolean(spec.kept));
    new Chart(place, spec);
  }
  $$("table.sortable").forEach(sortable);
  const data = read("runs-data");
  if (data) new Runs($("#runs-table"), data);
  addEventListener("beforeprint", () => $$("details").forEach((d) => d.setAttribute("open", "")));
  document.body.dataset.ready = "yes";
};
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
