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
const exponential = (value) => value.toExponential().replace(/e([-+])(\d)$/, "e$10$2");
const withDecimals = (value, decimals) =>
  Number(value.toFixed(decimals)).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
const number = (given, digits = 4) => {
  const value = finite(given);
  if (typeof value !== "number" || Number.isNaN(value)) return "unknown";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value.toLocaleString("en");
  const written = Number(value.toPrecision(digits));
  if (size < 1e-4 || size >= 1e15) return exponential(Number(value.toPrecision(digits - 1)));
  if (size >= 10 ** digits) return written.toLocaleString("en");
  if (size < 1) return String(written);
  return withDecimals(value, Math.max(0, digits - String(Math.trunc(size)).length));
};
// The decimals of an estimate and its limits, as in Python (supported_decimals): two digits of half the width where that
// begins with 1 to 4, else one; a limit that is not zero gets a digit or two more where it would read as zero. Where one
// limit is much closer to the estimate than the other, the two have digits of their own: of their distance, or two
// significant ones where the limit lies between 0 and the estimate.
const firstDecimals = (half) => {
  const size = Math.floor(Math.log10(half));
  return -size + (half / 10 ** size < 5 ? 1 : 0);
};
const twoDigits = (value) => 1 - Math.floor(Math.log10(Math.abs(value)));
const signDecimals = (end, decimals) => {
  const zeros = [0, 1, 2].filter((d) => end !== 0 && Math.abs(end) * 10 ** (decimals + d) <= 0.5);
  return decimals + (zeros.length <= 2 ? zeros.length : 0);
};
const decimalsOf = (estimate, low, high) => {
  const ends = [low, high].filter(Number.isFinite);
  const half = ends.length === 2 ? (high - low) / 2 : ends.length ? Math.abs(estimate - ends[0]) : NaN;
  if (!Number.isFinite(half) || half <= 1e-12 * Math.abs(estimate)) {
    const known = Number.isFinite(estimate) ? Math.abs(estimate) : Math.max(0, ...ends.map(Math.abs));
    return Array(3).fill(known ? 2 - Math.floor(Math.log10(known)) : 0);
  }
  const wide = firstDecimals(half);
  const [below, above] = [estimate - low, high - estimate];
  const [near, far] = [Math.min(below, above), Math.max(below, above)];
  if (ends.length === 1 || estimate === 0 || !(near > 0 && near < far / 2))
    return Array(3).fill(Math.max(...ends.map((x) => signDecimals(x, wide))));
  const [close, other] = below <= above ? [low, high] : [high, low];
  const [share, digits] = [close / estimate, twoDigits(estimate)];
  const fine = Math.max(wide, share >= 0 && share < 1 ? digits : Math.min(firstDecimals(near), digits));
  let atClose = signDecimals(close, fine);
  const atOther = signDecimals(other, wide);
  if (share > 0.1 && share < 1) atClose = Math.max(atClose, Math.min(twoDigits(close), fine + 2));
  else if (close !== 0 && Math.abs(close) * 10 ** atClose <= 0.5) atClose = atOther;
  return close === low ? [fine, atClose, atOther] : [fine, atOther, atClose];
};
const fixed = (value, decimals) => {
  if (!Number.isFinite(value) || Math.abs(value) >= 1e15) return number(value, 3);
  if (decimals > 6 && Math.abs(value) < 1e-3) {
    const digits = value === 0 ? 1 : decimals + Math.floor(Math.log10(Math.abs(value))) + 1;
    const written = Number(value.toPrecision(Math.max(1, Math.min(digits, 15))));
    return Math.abs(written) < 1e-4 && written !== 0 ? exponential(written) : String(written);
  }
  const unit = 10 ** Math.max(0, -decimals);
  const rounded = Math.round(value / unit) * unit;
  const shown = decimals > 0 ? withDecimals(value, Math.min(decimals, 15)) : rounded.toLocaleString("en");
  return Number(shown.replaceAll(",", "")) === 0 ? shown.replace("-", "") : shown;
};
const ranged = (value, low, high, suffix = "") => {
  const known = low !== undefined && high !== undefined && !Number.isNaN(low) && !Number.isNaN(high);
  if (!known) return [Number.isNaN(value) ? "unknown" : `${number(value, 3)}${suffix}`, ""];
  const all = [value, low, high].map((x) => (Math.abs(x) < (suffix === "%" ? 1e-12 : 1e-100) ? 0 : x));
  const decimals = decimalsOf(...all);
  const [centre, ...limits] = all.map((x, i) => fixed(x, decimals[i]));
  return [`${centre}${Number.isFinite(value) ? suffix : ""}`, `[${limits.join(", ")}]`];
};
const tick = (value) => (Math.abs(value) >= 1e3 ? value.toLocaleString("en") : String(value));
// About how wide a number is in a chart, in pixels.
const inkOf = (text) => [...text].reduce((sum, letter) => sum + (/[.,]/.test(letter) ? 4 : 8), 0);
const numbers = (values) => values.map((v) => (v === null ? NaN : finite(v)));
const about = (n) => number(Number.isFinite(n) && n >= 1 ? Math.round(Number(n.toPrecision(3))) : n, 3);
const clipped = (text, most = 80) => {
  const letters = [...text.slice(0, 2 * most)];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
};

// --- one learner chosen for the whole page; each has one colour and one kind of line, in still pictures, too
const styleOf = ({ place, tone }) => `--colour: var(--${tone || `series-${place % COLOURS}`})`;
const dashOf = ({ place }) => `dash-${Math.floor((place || 0) / COLOURS) % DASHES}`;
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
