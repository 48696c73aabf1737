/** The hidden layers: an activation for each, one layer more or less. */

import { make } from "./dom.js";
import { field, option } from "./fields.js";

const DEEPEST = 5;

/**
 * The field for the setting "layers".
 * @param {{name: string, label: string, p: number|null}[]} activations
 * @param {(setting: string, value: string) => void} change
 */
export function layersField(activations, change) {
  const root = make("div", { class: "layers", role: "group", "aria-label": "Activations of the hidden layers" });
  const options = activations.map(({ name, label, p }) => [name, p ? `${label} (p = ${p})` : label]);
  const selects = () => [...root.querySelectorAll("select")];
  const now = () => selects().map((select) => select.value);
  const tell = (names) => change("layers", names.join(","));

  const row = (k) => {
    const about = { "data-setting": `layer${k + 1}`, "aria-label": `Activation of layer ${k + 1}`, onchange: () => tell(now()) };
    const select = make("select", about, ...options.map(option));
    return make("div", { class: "layer-row" }, make("span", { class: "hint" }, String(k + 1)), select);
  };
  const rows = make("div", { class: "layers" });
  const button = (text, title, act) => make("button", { type: "button", class: "small", title, onclick: act }, text);
  const less = button("\u2212 layer", "One layer less", () => tell(now().slice(0, -1)));
  const more = button("+ layer", "One layer more", () => tell([...now(), now().at(-1)]));
  root.append(rows, make("div", { class: "depth" }, less, more));

  return field("layers", "Layers", root, [], (value) => {
    const names = value.split(",").filter(Boolean);
    while (rows.childElementCount > names.length) rows.lastChild.remove();
    while (rows.childElementCount < names.length) rows.append(row(rows.childElementCount));
    selects().forEach((select, k) => {
      select.value = names[k];
    });
    less.disabled = names.length <= 1;
    more.disabled = names.length >= DEEPEST;
  });
}
