/** What can be taken along: pictures as PNG or SVG, the experiment as TOML or Python, a link. */

import { palette } from "./colours.js";
import { find } from "./dom.js";
import { widthOf, write } from "./figure.js";
import { SvgContext } from "./svg.js";
import { count, num } from "./views/numbers.js";

const FINE = 2; // pixels of a PNG to a CSS pixel
const EDGE = 16;

/** The name of a file of what is shown. */
const named = (state, ending, part = "") => `condensation${part ? `-${part}` : ""}-step${state.frame?.step ?? 0}.${ending}`;

/** Gives a file to the user. */
function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A text in rows that are not wider than a width. */
function rows(text, width, size) {
  const made = [];
  let row = "";
  for (const word of text.split(/\s+/)) {
    const longer = row ? `${row} ${word}` : word;
    if (row && widthOf(longer, size) > width) {
      made.push(row);
      row = word;
    } else row = longer;
  }
  return row ? [...made, row] : made;
}

/** The moment in words: step, loss, lines. */
function moment({ frame, layer }) {
  if (!frame) return "";
  const parts = [`step ${frame.step}`, `loss ${frame.loss === null ? "not a number" : num(frame.loss)}`];
  if (frame.lines) parts.push(`${count(frame.lines.count, "line")} found`);
  if (layer && layer.count !== null) parts.push(`${layer.count} predicted`);
  return parts.join(", ");
}

/** The settings that are not the defaults, and the seed. */
function chosen({ opened, hello }) {
  const settings = Object.entries(opened?.settings ?? {}).filter(([setting, value]) => setting === "seed" || value !== hello.defaults[setting]);
  return settings.map(([setting, value]) => `${setting} ${setting === "points" ? `(${value.split(";").length} drawn)` : value}`);
}

/** Where the cards stand on a sheet: as they do on the page. */
function plan(cards) {
  const place = (element) => element.getBoundingClientRect();
  const rects = cards.map(({ element, canvas }) => ({ outer: place(element), inner: place(canvas) }));
  const left = Math.min(...rects.map(({ outer }) => outer.left));
  const top = Math.min(...rects.map(({ outer }) => outer.top));
  const at = (rect) => ({ x: rect.left - left, y: rect.top - top, w: rect.width, h: rect.height });
  const places = rects.map(({ outer, inner }) => ({ outer: at(outer), inner: at(inner) }));
  return {
    places,
    width: Math.max(...places.map(({ outer }) => outer.x + outer.w)),
    height: Math.max(...places.map(({ outer }) => outer.y + outer.h)),
  };
}

/**
 * Draws a sheet with the cards and a title into a context.
 * @returns {{width: number, height: number}}
 */
function sheet(cards, state, makeContext) {
  const colours = palette(state.theme);
  const { places, width, height } = plan(cards);
  const title = rows(state.opened?.title ?? "condensation", width, 15);
  const settings = rows([moment(state), ...chosen(state)].filter(Boolean).join("; "), width, 12);
  const head = EDGE + 20 * title.length + 16 * settings.length + 10;
  const whole = { width: Math.ceil(width + 2 * EDGE), height: Math.ceil(height + head + EDGE) };
  const g = makeContext(whole.width, whole.height);
  g.fillStyle = colours.ground;
  g.fillRect(0, 0, whole.width, whole.height);
  title.forEach((row, k) => write(g, row, EDGE, EDGE + 14 + 20 * k, { size: 15, colour: colours.ink, weight: 600 }));
  settings.forEach((row, k) => write(g, row, EDGE, EDGE + 12 + 20 * title.length + 16 * k, { size: 12, colour: colours.soft }));
  cards.forEach((card, k) => {
    const { outer, inner } = places[k];
    const [x, y] = [outer.x + EDGE, outer.y + head];
    g.strokeStyle = colours.grid;
    g.lineWidth = 1;
    g.strokeRect(x, y, outer.w, outer.h);
    write(g, card.view.title, x + 12, y + 21, { size: 13, colour: colours.ink, weight: 600 });
    const box = { x: inner.x + EDGE, y: inner.y + head, w: inner.w, h: inner.h };
    g.save();
    card.view.draw(g, box, { ...state, hover: state.pinned });
    g.restore();
    rows(card.view.sentence(state), outer.w - 24, 12).forEach((row, line) => {
      write(g, row, x + 12, box.y + box.h + 16 + 16 * line, { size: 12, colour: colours.soft });
    });
  });
  return { g, ...whole };
}

/**
 * Saves a picture of some cards.
 * @param {object[]} cards
 * @param {object} state
 * @param {"png"|"svg"} kind
 * @param {string} [part] the view's name where it is one alone
 */
export async function savePicture(cards, state, kind, part = "") {
  if (!cards.length) return;
  if (kind === "svg") {
    const { g, width, height } = sheet(cards, state, () => new SvgContext());
    download(new Blob([g.toString(width, height)], { type: "image/svg+xml" }), named(state, "svg", part));
    return;
  }
  const canvas = document.createElement("canvas");
  sheet(cards, state, (width, height) => {
    Object.assign(canvas, { width: width * FINE, height: height * FINE });
    const g = canvas.getContext("2d");
    g.scale(FINE, FINE);
    return g;
  });
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("The picture is too large for this browser to save.");
  download(blob, named(state, "png", part));
}

/** Saves the experiment as text. */
export async function saveText(request, state, kind) {
  const answer = await request({ do: "export" });
  download(new Blob([answer[kind]], { type: "text/plain" }), named(state, { toml: "toml", python: "py" }[kind]));
}

/** Copies a text; where the page may not use the clipboard, through a field that is selected. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // no https, or the user does not allow it
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

/** The export menu: opens, closes, goes by arrow keys, tells what was chosen. */
export function menu(choose) {
  const [button, list] = [find("export"), find("export-menu")];
  const items = [...list.querySelectorAll("button")];
  const open = (shown) => {
    list.hidden = !shown;
    button.setAttribute("aria-expanded", String(shown));
    if (shown) items[0].focus();
  };
  button.addEventListener("click", () => open(list.hidden));
  list.addEventListener("click", (event) => {
    const kind = event.target.closest("[data-export]")?.dataset.export;
    if (!kind) return;
    open(false);
    button.focus();
    choose(kind);
  });
  list.addEventListener("keydown", (event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (way) items[(items.indexOf(document.activeElement) + way + items.length) % items.length].focus();
    else if (event.key === "Escape") {
      open(false);
      button.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!list.hidden && !event.target.closest(".menu")) open(false);
  });
}
