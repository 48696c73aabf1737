/** Colours of the pictures: the library's own (Okabe and Ito's), for a light and a dark ground, and colour maps. */

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];
const DARK = ["#4d9fe0", "#ff7f45", "#2dc79a", "#e59cc7", "#f4b73f", "#9cdaf8", "#a3a9b1"];

export const COLOURS = { light: LIGHT, dark: DARK };
export const LINES = 6; // line k has colour k modulo 6; the seventh colour is for units of no line

const PALETTES = {
  light: {
    theme: "light", ground: "#ffffff", ink: "#1d2229", soft: "#59626e", faint: "#c3c9d1", grid: "#edf0f4",
    arrow: "#b7bfca", none: "#8b939e", good: "#00795a", bad: "#b84500", wash: "#009e73", colours: LIGHT,
  },
  dark: {
    theme: "dark", ground: "#171b22", ink: "#eceff4", soft: "#a9b3c0", faint: "#465060", grid: "#262d37",
    arrow: "#4d5867", none: "#848e9b", good: "#3ed1a4", bad: "#ff9460", wash: "#2dc79a", colours: DARK,
  },
};

/** The colours of a theme: ground, ink, soft (small text), faint (axes), grid, arrow, none, good, bad, wash, colours. */
export function palette(theme) {
  return PALETTES[theme === "dark" ? "dark" : "light"];
}

/** The colour of line k, of none where k is negative. */
export function lineColour(k, theme) {
  const own = palette(theme);
  return k >= 0 ? own.colours[k % LINES] : own.none;
}

const SIZE = 256;

/** A colour map of stops at equal distances: `css(t)` for t in 0..1, and `table`, 256 pixels as ImageData keeps them. */
export function colourMap(stops) {
  const rgb = stops.map((stop) => [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)));
  const bytes = new Uint8ClampedArray(4 * SIZE);
  for (let k = 0; k < SIZE; k++) {
    const at = (k / (SIZE - 1)) * (rgb.length - 1);
    const low = Math.min(Math.floor(at), rgb.length - 2);
    for (let c = 0; c < 3; c++) bytes[4 * k + c] = rgb[low][c] + (at - low) * (rgb[low + 1][c] - rgb[low][c]);
    bytes[4 * k + 3] = 255;
  }
  const index = (t) => 4 * Math.round(Math.min(1, Math.max(0, t)) * (SIZE - 1));
  const css = (t) => `rgb(${bytes[index(t)]},${bytes[index(t) + 1]},${bytes[index(t) + 2]})`;
  return { css, table: new Uint32Array(bytes.buffer), size: SIZE };
}

/** Cosines, -1 to 1. */
export const SIMILARITY = colourMap(["#0c1f4a", "#2f6690", "#8fb8b0", "#f6e7c9"]);

/** Values from none to much, equally spaced to the eye. */
export const SEQUENTIAL = colourMap([
  "#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725",
]);

const DIVERGING = {
  light: colourMap(["#053a68", "#1f74b1", "#8dbfe0", "#fbfaf7", "#f7b27a", "#d8650f", "#7f3300"]),
  dark: colourMap(["#a8dcff", "#4d9fe0", "#21527d", "#1b2029", "#87431b", "#ee7d32", "#ffd2a6"]),
};

/** Values around zero: blue below, the ground's colour at zero, orange above. */
export function diverging(theme) {
  return DIVERGING[theme === "dark" ? "dark" : "light"];
}
