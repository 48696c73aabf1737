/** Keys for the whole page, and the list of them. */

import { find, make } from "./dom.js";
import { SPEEDS } from "./player.js";

const LIST = [
  ["space", "play or pause"],
  [". or \u2192", "one step forward"],
  ["\u2190", "back to the previous moment"],
  ["Home", "back to step 0"],
  ["End", "to the latest moment"],
  ["1 \u2026 9", `speed: ${SPEEDS.join(", ")} steps a frame`],
  ["n", "new initialization (another seed)"],
  ["c", "show or hide the settings"],
  ["t", "tour"],
  ["?", "these keys"],
  ["Esc", "close what is open"],
];
const ABOUT =
  "If the initial weights are small, training turns the neurons of a layer to a few common directions. This is called " +
  "condensation. Change a setting at the left, press play, and watch. Click a neuron to follow it. Click the loss curve to " +
  "go to a step. In a picture, the arrow keys go from neuron to neuron.";

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
