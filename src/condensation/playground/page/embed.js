/** The page inside of another page: `?embed` shows less of it, and `?hide=settings,tour` hides what it names. */

import { find } from "./dom.js";

/** What can be hidden, by its name in the address; beside these, each picture by the name of its view. */
const PARTS = {
  title: ".bar h1, .about",
  player: ".transport",
  seed: "#dice",
  speed: ".speed",
  numbers: ".readout",
  slider: ".scrub",
  settings: "#fold, .panel",
  tour: "#tour, .tour",
  share: "#share",
  export: ".menu, .save",
  theme: "#theme",
  help: "#help",
  full: "#full",
};
const EMBEDDED = ["title", "share", "theme", "help"]; // hidden where the page is embedded

/**
 * Hides what the address names.
 * @param {string[]} views names of the pictures
 * @returns {{embedded: boolean, unknown: string[]}} whether the page is embedded; names of nothing
 */
export function embed(views) {
  const wishes = new URLSearchParams(location.search);
  const embedded = wishes.has("embed");
  const names = (wishes.get("hide") ?? "").split(",").map((name) => name.trim()).filter(Boolean);
  const selector = (name) => (views.includes(name) ? `[data-view="${name}"]` : PARTS[name]);
  const known = names.filter((name) => Object.hasOwn(PARTS, name) || views.includes(name));
  for (const name of [...known, ...(embedded ? EMBEDDED : [])]) {
    for (const element of document.querySelectorAll(selector(name))) element.classList.add("away");
  }
  document.body.classList.toggle("embedded", embedded);
  const full = find("full");
  full.hidden = !embedded;
  full.addEventListener("click", () => (full.href = location.pathname + location.hash));
  return { embedded, unknown: names.filter((name) => !known.includes(name)) };
}

/** The names that `hide` knows. */
export const hideable = (views) => [...Object.keys(PARTS), ...views];

/** Whether a control is on the page and can be used. */
export function usable(id) {
  const element = find(id);
  return !element.disabled && !element.closest(".away");
}
