/** The bar for what the page has to say: errors, a diverged training, the connection. */

import { find, make } from "./dom.js";

const notices = new Map();

/**
 * Says a sentence until it is closed, replaced (same key) or taken back. An empty sentence takes it back.
 * @param {string} key
 * @param {string} sentence
 * @param {"error"|"info"} [tone]
 */
export function say(key, sentence, tone = "error") {
  const old = notices.get(key);
  if (!sentence) {
    old?.element.remove();
    notices.delete(key);
    return;
  }
  if (old?.sentence === sentence) return;
  old?.element.remove();
  const close = { type: "button", class: "quiet icon small", "aria-label": "Close this notice", onclick: () => say(key, "") };
  const element = make(
    "div",
    { class: `notice ${tone}`, "data-notice": key },
    make("span", {}, sentence),
    make("button", close, "\u00d7"),
  );
  notices.set(key, { element, sentence });
  find("notices").append(element);
}

/** The notice with a key, or "". */
export const noticeOf = (key) => notices.get(key)?.sentence ?? "";

/** Takes back the notices with these keys. */
export function hush(...keys) {
  for (const key of keys) say(key, "");
}

const WORK = {
  open: "preparing \u2026",
  cell: "preparing \u2026",
  layer: "predicting \u2026",
  frame: "preparing the training \u2026",
  run: "reading \u2026",
  sweep: "reading \u2026",
  export: "writing \u2026",
};

/** The quiet mark for an answer that takes long. */
export function busy(kind) {
  const element = find("busy");
  element.hidden = kind === null;
  element.textContent = kind === null ? "" : WORK[kind];
}
