/** Numbers and counts as a reader expects them. */

const RAISED = { "-": "\u207b" };
[..."\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"].forEach((raised, digit) => (RAISED[digit] = raised));

/** A power of ten with a raised exponent. */
export function power(exponent) {
  return "10" + String(exponent).replace(/./g, (c) => RAISED[c]);
}

const plain = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace("-", "\u2212");

/** A number to some digits; very large and very small ones with a power of ten. */
export function num(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "\u2212infinite";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e-3 && size < 1e5) {
    const whole = Math.ceil(Math.log10(size) + 1e-12);
    return plain(whole >= digits ? value.toFixed(0) : value.toPrecision(digits));
  }
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const head = plain(mantissa);
  return head === "1" ? power(Number(exponent)) : `${head}\u202f\u00d7\u202f${power(Number(exponent))}`;
}

/** A share as percent, with digits where they tell something. */
export function percent(share) {
  if (!Number.isFinite(share)) return "not a number";
  const value = 100 * share;
  if (value === 0) return "0%";
  if (Math.abs(value) < 0.01) return "under 0.01%";
  const digits = Math.abs(value) < 1 ? 2 : Math.abs(value) < 10 || (value > 99 && value < 99.95) ? 1 : 0;
  return `${plain(value.toFixed(digits))}%`;
}

/** How exact something is, from its relative error: "exact to 3%", or "off by 30%". */
export function exactness(error) {
  if (error > 0.05) return `off by ${percent(error)}`;
  return Math.abs(error) < 1e-4 ? "exact to better than 0.01%" : `exact to ${percent(error)}`;
}

/** "1 line", "3 lines". */
export function count(number, noun, nouns = `${noun}s`) {
  return `${number} ${number === 1 ? noun : nouns}`;
}

/** The ticks of a linear axis: nice values within low..high, about as many as wished, two at least. */
export function niceTicks(low, high, wished = 5) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [];
  const raw = span / Math.max(1, wished);
  const unit = 10 ** Math.floor(Math.log10(raw));
  let ticks = [];
  for (const factor of [10, 5, 2, 1, 0.5]) {
    const step = factor * unit;
    if (step < 0.999 * raw && ticks.length > 1) break;
    ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k <= Math.floor(high / step + 1e-9) && ticks.length < 50; k++) {
      ticks.push(k === 0 ? 0 : k * step);
    }
  }
  return ticks;
}

/** Labels of ticks with one number of decimals, and the power of ten taken out of all of them (0 if none). */
export function tickLabels(ticks) {
  const most = Math.max(...ticks.map(Math.abs), 0);
  if (most === 0) return { labels: ticks.map(() => "0"), exponent: 0 };
  const largest = Math.floor(Math.log10(most) + 1e-9);
  const exponent = largest < -2 || largest > 4 ? largest : 0;
  const scaled = ticks.map((tick) => tick / 10 ** exponent);
  const steps = scaled.slice(1).map((tick, k) => Math.abs(tick - scaled[k]));
  const step = Math.min(...steps, Math.abs(scaled[0]) || Infinity, steps.length ? Infinity : Math.abs(scaled[0]));
  const digits = Math.min(6, Math.max(0, -Math.floor(Math.log10(step) + 1e-6)));
  return { labels: scaled.map((tick) => tick.toFixed(digits).replace("-", "\u2212")), exponent };
}
