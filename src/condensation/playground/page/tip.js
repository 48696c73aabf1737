/** The small box beside the pointer that tells of what is under it. */

import { find, make } from "./dom.js";

const AWAY = 14;

/**
 * @param {string[]} lines
 * @param {{x: number, y: number}|null} at on the screen
 */
export function tip(lines, at) {
  const box = find("tip");
  if (!at || !lines.length) {
    box.hidden = true;
    return;
  }
  const text = lines.join("\n");
  if (box.dataset.text !== text) {
    box.dataset.text = text;
    box.replaceChildren(...lines.map((line) => make("div", {}, line)));
  }
  box.hidden = false;
  const { offsetWidth: w, offsetHeight: h } = box;
  const x = at.x + AWAY + w > innerWidth ? at.x - AWAY - w : at.x + AWAY;
  const y = at.y + AWAY + h > innerHeight ? at.y - AWAY - h : at.y + AWAY;
  box.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
}
