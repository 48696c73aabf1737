/** Keys for the whole page, and the list of them. */

import { find, make } from "./dom.js";
import { SPEEDS } from "./player.js";

const LIST = [
  ["space", "play or pause"],
  [". or \u2192", "one step on"],
  ["\u2190", "back to the moment before"],
  ["Home", "back to the start"],
  ["End", "to the latest moment"],
  ["1 \u2026 9", `speed: ${SPEEDS.join(", ")} steps a frame`],
  ["n", "another start (new seed)"],
  ["c", "show or hide the settings"],
  ["t", "tour"],
  ["?", "these keys"],
  ["Esc", "close what is open"],
];
const ABOUT =
  "Neurons of a layer turn to a few common directions when training starts from small weights. Change something at the " +
  "left, press play, and watch. Click a neuron to follow it; click a moment in the loss to go there. In a picture, arrow " +
  "keys go from neuron to neuron.";

/** The dialog with the keys. */
export function help() {
  const dialog = find("keys");
  if (!dialog.childElementCount) {
    const list = make("dl", {}, ...LIST.flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)]));
    const close = make("button", { type: "button", onclick: () => dialog.close() }, "Close");
    dialog.append(make("h2", { id: "keys-title" }, "The playground"), make("p", {}, ABOUT), list, close);
  }
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

const TYPES = "input:not([type=range]):not([type=checkbox]), textarea, select";

/** After a click or a choice by the pointer the keys belong to the player again, not to the button or the list. */
function letGo() {
  let pointed = false;
  document.addEventListener("pointerdown", () => (pointed = true), true);
  document.addEventListener("keydown", () => (pointed = false), true);
  document.addEventListener("click", (event) => {
    if (event.detail > 0) event.target.closest("button:not([aria-haspopup]), summary")?.blur();
  });
  document.addEventListener("change", (event) => {
    if (pointed) event.target.closest("select, input[type=checkbox], input[type=range]")?.blur();
  });
}

/**
 * Listens for keys, except while the user types.
 * @param {Object<string, () => void>} acts by name: toggle, step, back, rewind, latest, seed, fold, tour, close
 * @param {(speed: number) => void} speed
 */
export function listen(acts, speed) {
  const keys = {
    " ": acts.toggle, ".": acts.step, ArrowRight: acts.step, ArrowLeft: acts.back, Home: acts.rewind, End: acts.latest,
    n: acts.seed, c: acts.fold, t: acts.tour, "?": help,
  };
  letGo();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || find("keys").open) return;
    const { target, key } = event;
    if (key === "Escape") {
      acts.close();
      return;
    }
    if (target.closest(TYPES)) return;
    const slider = target.closest("input[type=range]");
    if (slider && slider.id !== "scrub" && /^(Arrow|Home|End)/.test(key)) return;
    if (key === " " && target.closest("button, summary, a, input[type=checkbox]")) return;
    const act = keys[key] ?? (/^[1-9]$/.test(key) ? () => speed(SPEEDS[Number(key) - 1]) : null);
    if (!act) return;
    event.preventDefault();
    act();
  });
}
