/** The kinds of input fields in the settings: each shows one setting and tells when the user changes it. */

import { make } from "./dom.js";

/**
 * @typedef {Object} Field
 * @property {HTMLElement} element
 * @property {string} setting
 * @property {(value: string) => void} set shows a value, without telling
 * @property {(sentence: string) => void} fault shows what is wrong, or "" for nothing
 * @property {(shown: boolean) => void} show
 */

/**
 * What all fields have: a label, the inputs, a place for what is wrong.
 * @param {string} setting
 * @param {string} label
 * @param {HTMLElement} main the input that the label belongs to
 * @param {HTMLElement[]} rest further inputs beside it
 * @param {(value: string) => void} set
 * @param {string} [hint]
 * @returns {Field}
 */
export function field(setting, label, main, rest, set, hint = "") {
  const id = main.id || `setting-${setting}`;
  main.id = id;
  main.dataset.setting ??= setting;
  const fault = make("p", { class: "fault", id: `${id}-fault`, hidden: true });
  main.setAttribute("aria-describedby", fault.id);
  const element = make(
    "div",
    { class: "field", "data-field": setting },
    make("label", { for: id, title: hint || null }, label),
    make("div", { class: "inputs" }, main, ...rest),
    fault,
  );
  return {
    element,
    setting,
    set,
    show: (shown) => {
      element.hidden = !shown;
    },
    fault: (sentence) => {
      fault.textContent = sentence;
      fault.hidden = !sentence;
      if (sentence) main.setAttribute("aria-invalid", "true");
      else main.removeAttribute("aria-invalid");
    },
  };
}

/** Shows a value in an input, unless the user is typing in it. */
function put(input, value) {
  if (document.activeElement === input && input.dataset.typing) return;
  if (input.value !== value) input.value = value;
}

/** Marks an input as being typed in until its value is taken. */
function typed(input, take) {
  input.addEventListener("input", () => {
    input.dataset.typing = "1";
  });
  input.addEventListener("change", () => {
    delete input.dataset.typing;
    take();
  });
  input.addEventListener("blur", () => {
    delete input.dataset.typing;
  });
}

/** A choice. Options are [value, text] pairs, or [text, [pairs]] groups. */
export function choice(setting, label, options, change, hint = "") {
  const select = make("select", {}, ...options.map(option));
  select.addEventListener("change", () => change(setting, select.value));
  return field(setting, label, select, [], (value) => {
    select.value = value;
  }, hint);
}

/** An option, or a group of them. */
export function option([value, text]) {
  if (Array.isArray(text)) return make("optgroup", { label: value }, ...text.map(option));
  return make("option", { value }, text);
}

/** A number that is typed. `whole` numbers have arrows beside them. */
export function number(setting, label, limits, whole, change, hint = "") {
  const [least, most] = limits ?? [null, null];
  const kind = whole ? { type: "number", min: least, max: most, step: 1 } : { type: "text", inputmode: "decimal" };
  const input = make("input", kind);
  input.autocomplete = "off";
  typed(input, () => change(setting, input.value.trim()));
  return field(setting, label, input, [], (value) => put(input, value), hint);
}

/** A slider with a number beside it; logarithmic where asked. */
export function slider(setting, label, limits, { log = false, whole = false }, change, hint = "") {
  const [least, most] = limits;
  const scale = log ? Math.log10 : (value) => value;
  const back = log ? (place) => 10 ** place : (place) => place;
  const range = make("input", {
    type: "range",
    min: scale(least),
    max: scale(most),
    step: log ? (whole ? "any" : 0.05) : whole ? 1 : "any",
    "aria-label": `${label}, slider`,
  });
  const input = make("input", { type: "text", inputmode: "decimal", class: "short" });
  input.autocomplete = "off";
  const tidy = (value) => (whole ? String(Math.round(value)) : Number(value.toPrecision(2)).toString());
  range.addEventListener("input", () => {
    input.value = tidy(back(Number(range.value)));
    change(setting, input.value);
  });
  const place = (value) => {
    const at = scale(Number(value));
    if (Number.isFinite(at)) range.value = String(at);
  };
  typed(input, () => {
    place(input.value);
    change(setting, input.value.trim());
  });
  return field(setting, label, input, [range], (value) => {
    put(input, short(value));
    if (document.activeElement !== range || tidy(back(Number(range.value))) !== short(value)) place(value);
  }, hint);
}

/** 1e-07 as people write it, 1e-7. */
const short = (value) => value.replace(/e([+-])0+(\d)/, (_, sign, digit) => `e${sign === "-" ? "-" : ""}${digit}`);

/** A tick for 0 or 1. */
export function tick(setting, label, change, hint = "") {
  const input = make("input", { type: "checkbox" });
  input.addEventListener("change", () => change(setting, input.checked ? "1" : "0"));
  const made = field(setting, label, input, [], (value) => {
    input.checked = value === "1";
  }, hint);
  made.element.classList.add("tick");
  return made;
}

/** A line of text, taken on Enter, on leaving the field, or when the user rests. */
export function line(setting, label, change, hint = "") {
  const input = make("input", { type: "text", spellcheck: "false", autocapitalize: "off", class: "code" });
  input.autocomplete = "off";
  let timer = 0;
  let told = "";
  const tell = () => {
    clearTimeout(timer);
    if (input.value !== told) change(setting, (told = input.value));
  };
  input.addEventListener("input", () => {
    input.dataset.typing = "1";
    clearTimeout(timer);
    timer = setTimeout(tell, 600);
  });
  input.addEventListener("change", () => {
    delete input.dataset.typing;
    tell();
  });
  const made = field(setting, label, input, [], (value) => {
    if (document.activeElement === input && input.value !== value) return;
    input.value = told = value;
  }, hint);
  made.element.classList.add("wide");
  return made;
}

/** Two fields beside each other under one label. */
export function pair(label, first, second) {
  const inputs = make("div", { class: "inputs" }, first, second);
  return make("div", { class: "pair", role: "group", "aria-label": label }, make("span", { class: "label" }, label), inputs);
}

/** A titled group of fields. */
export function group(title, ...parts) {
  return make("details", { class: "group", open: true }, make("summary", {}, title), ...parts);
}
