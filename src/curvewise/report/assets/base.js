// Elements, numbers for people, and the learner that is chosen.
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 8;
const DASHES = 3;
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
const finite = (value) => (value === "Infinity" ? Infinity : value === "-Infinity" ? -Infinity : value);
const number = (given, digits = 4) => {
  const value = finite(given);
  if (typeof value !== "number" || Number.isNaN(value)) return "unknown";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return size < 1e4 ? String(value) : value.toLocaleString("en");
  const written = Number(value.toPrecision(digits));
  if (size < 1e-4 || size >= 1e15) return Number(value.toPrecision(digits - 1)).toExponential();
  if (size >= 10 ** digits) return written.toLocaleString("en");
  if (size < 1) return String(written);
  return value.toFixed(Math.max(0, digits - String(Math.trunc(size)).length));
};
const tick = (value) => (Math.abs(value) >= 1e4 ? value.toLocaleString("en") : String(value));
const numbers = (values) => values.map((v) => (v === null ? NaN : finite(v)));
const about = (n) => number(Number.isFinite(n) && n >= 1 ? Math.round(Number(n.toPrecision(3))) : n, 3);
const clipped = (text, most = 80) => {
  const letters = [...text.slice(0, 2 * most)];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
};

// --- one learner chosen for the whole page; each has one colour and one kind of line
const places = new Map();
const placeOf = (name) => {
  if (!places.has(name)) places.set(name, places.size);
  return places.get(name);
};
const styleOf = (name) => `--colour: var(--series-${placeOf(name) % COLOURS})`;
const dashOf = (name) => `dash-${Math.floor(placeOf(name) / COLOURS) % DASHES}`;
const chosen = { name: null, listeners: [] };
const mark = (inside = document) => {
  for (const part of $$("tr[data-learner], button[data-learner]", inside)) {
    const own = part.dataset.learner === chosen.name;
    part.classList.toggle("chosen", own);
    if (part.tagName === "BUTTON") part.setAttribute("aria-pressed", String(own));
  }
};
const choose = (name) => {
  chosen.name = chosen.name === name ? null : name;
  document.body.classList.toggle("choosing", chosen.name !== null);
  mark();
  for (const listener of chosen.listeners) listener();
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-learner]");
  if (button) choose(button.dataset.learner);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && chosen.name !== null) choose(chosen.name);
});
