// Scales, and what can be read off a curve.
// --- scales
const SCALES = {
  linear: { to: (n) => n, words: "n", label: "training size n" },
  log: { to: (n) => Math.log10(n), words: "log n", label: "training size n" },
  root: { to: (n) => -1 / Math.sqrt(n), words: "n", power: "−½", label: "training size n, spaced by n^−½" },
};
const nice = (low, high, count) => {
  const step = 10 ** Math.floor(Math.log10((high - low) / count));
  const wide = [1, 2, 5, 10].map((k) => k * step).find((k) => (high - low) / k <= count);
  const ticks = [];
  for (let k = Math.ceil(low / wide - 1e-9); k * wide <= high + 1e-9 * wide; k += 1) {
    ticks.push(Number((k * wide).toPrecision(12)));
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

// --- what can be read off a curve: values at sizes ns, between them straight in log n
const after = (ns, n) => {
  let [low, high] = [0, ns.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ns[middle] < n) low = middle + 1;
    else high = middle;
  }
  return Math.max(low, 1);
};
const readAt = (ns, values, n) => {
  const i = after(ns, n);
  const share = Math.min(Math.max(Math.log(n / ns[i - 1]) / Math.log(ns[i] / ns[i - 1]), 0), 1);
  const [a, b] = [values[i - 1], values[i]];
  if (!Number.isFinite(a) || !Number.isFinite(b)) return share < 1 ? a : b;
  return a + share * (b - a);
};
const crossing = (ns, values, target, i) => {
  // Where a falling line between sizes i − 1 and i is at the target.
  const share = (values[i - 1] - target) / (values[i - 1] - values[i]);
  return ns[i - 1] * (ns[i] / ns[i - 1]) ** Math.min(Math.max(share, 0), 1);
};
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
  let left = start;
  while (left > 0 && inside(left - 1)) left -= 1;
  let right = start;
  while (right < end && inside(right)) right += 1;
  return {
    n,
    low: left === 0 ? 0 : left === end ? ns[end - 1] : Math.min(n, crossing(ns, low, target, left)),
    high: right === end ? Infinity : right === 0 ? 0 : Math.max(n, crossing(ns, high, target, right)),
  };
};
