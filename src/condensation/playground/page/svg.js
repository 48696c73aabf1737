/**
 * A canvas's drawing context that writes SVG: paths, arcs, rectangles, text, dashes, alpha, clipping by rectangles,
 * translations, rotations, and images. It knows what the views use and nothing more. Transformations are worked into
 * the coordinates of paths, so that no groups are needed.
 */

const digits = (v) => String(Math.round(v * 100) / 100);
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => escapes[c]);
const ANCHORS = { left: "start", start: "start", center: "middle", right: "end", end: "end" };
const BASES = { top: 0.78, middle: 0.35, alphabetic: 0, bottom: -0.22 }; // of the font's size, from there to the base

const DEFAULTS = {
  fillStyle: "#000000", strokeStyle: "#000000", lineWidth: 1, lineCap: "butt", lineJoin: "miter", lineDashOffset: 0,
  globalAlpha: 1, font: "10px sans-serif", textAlign: "left", textBaseline: "alphabetic", imageSmoothingEnabled: true,
};

export class SvgContext {
  constructor() {
    Object.assign(this, DEFAULTS);
    this.dash = [];
    this.matrix = [1, 0, 0, 1, 0, 0];
    this.clipped = null; // {x, y, w, h} in the coordinates of the page
    this.stack = [];
    this.parts = [];
    this.clips = [];
    this.path = "";
    this.rects = []; // rectangles of the present path, for clip()
    this.ruler = null;
  }

  save() {
    const kept = Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, this[name]]));
    this.stack.push({ ...kept, dash: [...this.dash], matrix: [...this.matrix], clipped: this.clipped });
  }

  restore() {
    const kept = this.stack.pop();
    if (kept) Object.assign(this, kept);
  }

  translate(x, y) {
    const [a, b, c, d, e, f] = this.matrix;
    this.matrix = [a, b, c, d, a * x + c * y + e, b * x + d * y + f];
  }

  rotate(angle) {
    const [a, b, c, d, e, f] = this.matrix;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    this.matrix = [a * cos + c * sin, b * cos + d * sin, c * cos - a * sin, d * cos - b * sin, e, f];
  }

  setLineDash(dash) {
    this.dash = [...dash];
  }

  beginPath() {
    this.path = "";
    this.rects = [];
  }

  moveTo(x, y) {
    this.path += `M${this.#point(x, y)}`;
  }

  lineTo(x, y) {
    this.path += `${this.path ? "L" : "M"}${this.#point(x, y)}`;
  }

  closePath() {
    this.path += "Z";
  }

  arc(x, y, radius, from, to, back = false) {
    const at = (angle) => [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
    const full = Math.abs(to - from) >= 2 * Math.PI - 1e-9;
    const way = back ? 0 : 1;
    this.path += `${this.path && !this.path.endsWith("Z") ? "L" : "M"}${this.#point(...at(from))}`;
    const piece = (end, large) => `A${digits(radius)} ${digits(radius)} 0 ${large} ${way} ${this.#point(...at(end))}`;
    if (full) {
      this.path += piece(from + Math.PI, 0) + piece(from + 2 * Math.PI, 0);
      return;
    }
    const turn = 2 * Math.PI;
    const sweep = back ? (((from - to) % turn) + turn) % turn : (((to - from) % turn) + turn) % turn;
    this.path += piece(to, sweep > Math.PI ? 1 : 0);
  }

  rect(x, y, w, h) {
    this.rects.push({ x, y, w, h, matrix: [...this.matrix] });
    this.path += `M${this.#point(x, y)}L${this.#point(x + w, y)}L${this.#point(x + w, y + h)}L${this.#point(x, y + h)}Z`;
  }

  fill() {
    if (this.path) this.#add(`<path d="${this.path}" ${this.#paint(this.fillStyle)}`);
  }

  stroke() {
    if (this.path) this.#add(`<path d="${this.path}" fill="none" ${this.#line()}`);
  }

  fillRect(x, y, w, h) {
    this.#aside(() => this.fill(), x, y, w, h);
  }

  strokeRect(x, y, w, h) {
    this.#aside(() => this.stroke(), x, y, w, h);
  }

  clearRect() {} // nothing is there yet: a new picture is a new context

  /** What follows is kept inside the path, which has to be one upright rectangle, and inside what clipped before. */
  clip() {
    const [own] = this.rects;
    if (this.rects.length !== 1) throw new Error(`an SVG picture is clipped by one rectangle, not by ${this.rects.length}`);
    const [x, y] = [own.x + own.matrix[4], own.y + own.matrix[5]];
    const old = this.clipped ?? { x, y, w: own.w, h: own.h };
    const [left, top] = [Math.max(x, old.x), Math.max(y, old.y)];
    const [right, bottom] = [Math.min(x + own.w, old.x + old.w), Math.min(y + own.h, old.y + old.h)];
    this.clipped = { x: left, y: top, w: Math.max(0, right - left), h: Math.max(0, bottom - top) };
  }

  measureText(text) {
    this.ruler ??= document.createElement("canvas").getContext("2d");
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  fillText(text, x, y) {
    this.#text(text, x, y, this.#paint(this.fillStyle));
  }

  strokeText(text, x, y) {
    this.#text(text, x, y, `fill="none" ${this.#line()}`);
  }

  /** The pixels of a canvas, kept in the file itself. */
  drawImage(canvas, x, y, w, h) {
    const style = this.imageSmoothingEnabled ? "" : ' style="image-rendering:pixelated"';
    const alpha = this.globalAlpha < 1 ? ` opacity="${digits(this.globalAlpha)}"` : "";
    const place = `x="${digits(x)}" y="${digits(y)}" width="${digits(w)}" height="${digits(h)}" preserveAspectRatio="none"`;
    this.#add(`<image ${place}${style}${alpha} ${this.#transform()} href="${canvas.toDataURL("image/png")}"`);
  }

  /** The whole picture as a file of its own. */
  toString(width, height) {
    const defs = this.clips.map(
      (r, k) => `<clipPath id="clip${k}"><rect x="${digits(r.x)}" y="${digits(r.y)}" width="${digits(r.w)}" height="${digits(r.h)}"/></clipPath>`,
    );
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`;
    return `${head}\n${defs.length ? `<defs>${defs.join("")}</defs>\n` : ""}${this.parts.join("\n")}\n</svg>\n`;
  }

  #point(x, y) {
    const [a, b, c, d, e, f] = this.matrix;
    return `${digits(a * x + c * y + e)} ${digits(b * x + d * y + f)}`;
  }

  #transform() {
    const plain = this.matrix.every((v, k) => v === (k === 0 || k === 3 ? 1 : 0));
    return plain ? "" : `transform="matrix(${this.matrix.map((v) => String(Math.round(v * 1e4) / 1e4)).join(" ")})"`;
  }

  #aside(paint, x, y, w, h) {
    const [path, rects] = [this.path, this.rects];
    this.beginPath();
    this.rect(x, y, w, h);
    paint();
    [this.path, this.rects] = [path, rects];
  }

  #paint(style) {
    return `fill="${escaped(style)}"${this.globalAlpha < 1 ? ` fill-opacity="${digits(this.globalAlpha)}"` : ""}`;
  }

  #line() {
    let text = `stroke="${escaped(this.strokeStyle)}" stroke-width="${digits(this.lineWidth)}"`;
    if (this.lineCap !== "butt") text += ` stroke-linecap="${this.lineCap}"`;
    if (this.lineJoin !== "miter") text += ` stroke-linejoin="${this.lineJoin}"`;
    if (this.dash.length) text += ` stroke-dasharray="${this.dash.map(digits).join(" ")}"`;
    if (this.dash.length && this.lineDashOffset) text += ` stroke-dashoffset="${digits(this.lineDashOffset)}"`;
    return this.globalAlpha < 1 ? `${text} stroke-opacity="${digits(this.globalAlpha)}"` : text;
  }

  #text(text, x, y, paint) {
    const [, weight, size, family] = /^(?:(\w+) )?([\d.]+)px (.*)$/.exec(this.font) ?? [null, "400", "12", "sans-serif"];
    const base = y + (BASES[this.textBaseline] ?? 0) * Number(size);
    const style = `font-family="${escaped(family)}" font-size="${size}" font-weight="${weight ?? "400"}"`;
    const place = `x="${digits(x)}" y="${digits(base)}" text-anchor="${ANCHORS[this.textAlign] ?? "start"}"`;
    this.#add(`<text ${place} ${style} ${paint} ${this.#transform()}`, escaped(text));
  }

  /** An element, given without its end, inside what clips at this moment. */
  #add(element, content = null) {
    let clip = "";
    if (this.clipped) {
      const same = (r) => ["x", "y", "w", "h"].every((side) => r[side] === this.clipped[side]);
      let k = this.clips.findIndex(same);
      if (k < 0) k = this.clips.push(this.clipped) - 1;
      clip = `clip-path="url(#clip${k})"`;
    }
    const open = `${element} ${clip}`.trimEnd();
    this.parts.push(content === null ? `${open}/>` : `${open}>${content}</text>`);
  }
}
