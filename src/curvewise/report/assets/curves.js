// Scales, and what can be read off a curve.
// --- scales
const SCALES = {
  linear: { to: (n) => n, from: (u) => u, words: "n", label: "number of training samples" },
  log: { to: (n) => Math.log10(n), from: (u) => 10 ** u, words: "log n", label: "number of training samples" },
  root: {
    to: (n) => -1 / Math.sqrt(n),
    from: (u) => (u < 0 ? 1 / u ** 2 : Infinity),
    words: "n",
    power: "−½",
    label: "number of training samples n, on a scale of 1/√n",
  },
};
// Round numbers, about so many; more of them where there would be fewer than the least that a scale needs.
const nice = (low, high, count, least = 1) => {
  const step = 10 ** Math.floor(Math.log10((high - low) / count));
  const ticksAt = (wide) => {
    const ticks = [];
    for (let k = Math.ceil(low / wide - 1e-9); k * wide <= high + 1e-9 * wide; k += 1) {
      ticks.push(Number((k * wide).toPrecision(12)));
    }
    return ticks;
  };
  const widths = [10, 5, 2, 1].map((k) => k * step);
  const narrow = widths.filter((wide) => (high - low) / wide > count);
  const widest = widths[widths.length - narrow.length - 1];
  return [widest, ...narrow].map(ticksAt).find((ticks) => ticks.length >= least) || ticksAt(step);
};
const sizesBetween = (low, high) => {
  const ticks = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p += 1) {
    for (const k of [1, 2, 5]) ticks.push(k * 10 ** p);
  }
  const inside = ticks.filter((t) => t >= low * 0.999 && t <= high * 1.001);
  return inside.length > 1 ? inside : nice(low, high, 3, 2); // 300 to 450 hold none of 1, 2, 5, …
};

// --- what can be read off a curve: values at sizes ns, between them straight or smooth in log n
const after = (ns, n) => {
  let [low, high] = [0, ns.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ns[middle] < n) low = middle + 1;
    else high = middle;
  }
  return Math.max(low, 1);
};
const readStraight = (ns, values, n, log) => {
  // Nothing is known beyond what was measured.
  if (n < ns[0] || n > ns[ns.length - 1]) return NaN;
  if (ns.length === 1) return values[0];
  const i = after(ns, n);
  const [a, b, x] = [ns[i - 1], ns[i], n].map((v) => (log ? Math.log(v) : v));
  const share = (x - a) / (b - a);
  if (share === 0 || share === 1) return values[share ? i : i - 1];
  return (1 - share) * values[i - 1] + share * values[i];
};
const readAt = (ns, values, n, between = "smooth") => {
  if (between !== "smooth") return readStraight(ns, values, n, between === "log");
  // The cubic through the nearest four, which stays between the nearest two.
  const i = after(ns, n);
  const [a, b] = [values[i - 1], values[i]];
  const x = Math.log(Math.min(Math.max(n, ns[i - 1]), ns[i]));
  if (!Number.isFinite(a) || !Number.isFinite(b)) return n < ns[i] ? a : b;
  const near = [i - 2, i - 1, i, i + 1].filter((k) => Number.isFinite(values[k]));
  const at = near.map((k) => Math.log(ns[k]));
  const found = near.reduce((sum, k, j) => {
    const weight = at.reduce((w, u, m) => (m === j ? w : (w * (x - u)) / (at[j] - u)), 1);
    return sum + weight * values[k];
  }, 0);
  return Math.min(Math.max(found, Math.min(a, b)), Math.max(a, b));
};
const crossing = (ns, values, target, i) => {
  // Where a falling line between sizes i − 1 and i is at the target.
  let [low, high] = [Math.log(ns[i - 1]), Math.log(ns[i])];
  for (let step = 0; step < 20; step += 1) {
    const middle = (low + high) / 2;
    if (readAt(ns, values, Math.exp(middle)) > target) low = middle;
    else high = middle;
  }
  return Math.exp((low + high) / 2);
};
const nearestTo = (place, places) =>
  places.reduce((best, i) => (best === undefined || Math.abs(i - place) < Math.abs(best - place) ? i : best), undefined);
const samplesFor = (ns, line, target, worsens) => {
  // Values fall; the interval holds the sizes around the crossing whose band holds the target.
  const { value, low, high } = line;
  const end = ns.length;
  if (worsens) {
    const n = value[after(ns, line.first)] <= target ? NaN : Infinity;
    return { n, low: n, high: n };
  }
  const inside = (i) => low[i] <= target && high[i] >= target;
  const found = value.findIndex((v) => v <= target);
  const start = found < 0 ? end : found;
  const n = start === end ? Infinity : start === 0 ? ns[0] : crossing(ns, value, target, start);
  if (start === end && !inside(end - 1)) return { n, low: Infinity, high: Infinity };
  // Where a prior has pulled the curve out of its own band, the interval is aside.
  const aside = inside(start) || inside(start - 1) ? undefined : nearestTo(start, ns.map((_, i) => i).filter(inside));
  let left = aside ?? start;
  while (left > 0 && inside(left - 1)) left -= 1;
  let right = aside ?? start;
  while (right < end && inside(right)) right += 1;
  return {
    n,
    low: left === 0 ? 0 : left === end ? ns[end - 1] : crossing(ns, low, target, left),
    high: right === end ? Infinity : right === 0 ? 0 : crossing(ns, high, target, right),
  };
};
