/** Points of a target that the user draws: a small plane to click in, and the same points as text. */

import { make } from "./dom.js";
import { palette } from "./figure.js";

const REACH = 2; // coordinates are from -2 to 2
const MOST = 400;
const NEAR = 12; // px within which the eraser takes a point
/** What a user finds who has drawn nothing yet: four corners that no line tells apart. */
export const STARTER = "1,1,1;1.2,0.9,1;-1,-1,1;-0.9,-1.2,1;1,-1,-1;0.9,-1.2,-1;-1,1,-1;-1.2,0.9,-1";

/** @param {string} text */
export const parse = (text) =>
  text
    .split(";")
    .map((row) => row.split(",").map(Number))
    .filter((row) => row.length === 3 && row.every(Number.isFinite));

/** @param {number[][]} points */
const format = (points) => points.map((row) => row.map((value) => Number(value.toFixed(2))).join(",")).join(";");

/** The field for the setting "points"; has `paint(theme)` beside what other fields have. */
export function drawing(change) {
  const canvas = make("canvas", { class: "pad", width: 480, height: 480, "aria-hidden": "true" });
  const text = make("textarea", { id: "setting-points", "data-setting": "points", rows: 3, spellcheck: "false", class: "code" });
  const fault = make("p", { class: "fault", id: "setting-points-fault", hidden: true });
  text.setAttribute("aria-describedby", fault.id);
  const modes = { plus: "Add +1", minus: "Add \u22121", erase: "Erase" };
  let mode = "plus";
  let theme = "light";
  let points = [];
  let erasing = false;

  const buttons = Object.entries(modes).map(([name, label]) =>
    make("button", { type: "button", "aria-pressed": String(name === mode), onclick: () => choose(name) }, label),
  );
  const clear = make("button", { type: "button", onclick: () => tell([]) }, "Clear");

  function choose(name) {
    mode = name;
    Object.keys(modes).forEach((key, k) => buttons[k].setAttribute("aria-pressed", String(key === name)));
    canvas.classList.toggle("erase", name === "erase");
  }
  function tell(next) {
    points = next;
    text.value = format(points);
    paint(theme);
    change("points", text.value);
  }
  const place = (event) => {
    const rect = canvas.getBoundingClientRect();
    const x = ((event.clientX - rect.left) / rect.width) * 2 * REACH - REACH;
    const y = REACH - ((event.clientY - rect.top) / rect.height) * 2 * REACH;
    return { x, y, reach: (NEAR / rect.width) * 2 * REACH };
  };
  function erase(event) {
    const { x, y, reach } = place(event);
    const left = points.filter((row) => Math.hypot(row[0] - x, row[1] - y) > reach);
    if (left.length !== points.length) tell(left);
  }
  const clamp = (value) => Math.min(REACH, Math.max(-REACH, value));

  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => {
    if (canvas.closest("fieldset")?.disabled) return;
    if (mode === "erase") {
      erasing = true;
      canvas.setPointerCapture(event.pointerId);
      erase(event);
    } else if (points.length < MOST) {
      const { x, y } = place(event);
      const negative = mode === "minus" || event.shiftKey || event.button === 2;
      tell([...points, [clamp(x), clamp(y), negative ? -1 : 1]]);
    }
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (erasing) erase(event);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => {
      erasing = false;
    });
  }
  text.addEventListener("change", () => {
    points = parse(text.value);
    paint(theme);
    change("points", text.value.trim().replace(/[\s;]*\n\s*/g, ";"));
  });

  function paint(next) {
    theme = next;
    const colours = palette(theme);
    const g = canvas.getContext("2d");
    const { width, height } = canvas;
    const at = (value) => ((value + REACH) / (2 * REACH)) * width;
    g.clearRect(0, 0, width, height);
    g.strokeStyle = colours.grid ?? colours.faint;
    g.lineWidth = 2;
    for (let k = 1; k < 4; k++) {
      g.globalAlpha = k === 2 ? 1 : 0.45;
      g.beginPath();
      g.moveTo(at(k - REACH), 0);
      g.lineTo(at(k - REACH), height);
      g.moveTo(0, at(k - REACH));
      g.lineTo(width, at(k - REACH));
      g.stroke();
    }
    g.globalAlpha = 1;
    for (const [x, y, value] of points) {
      g.beginPath();
      g.arc(at(x), height - at(y), 10, 0, 2 * Math.PI);
      g.fillStyle = value >= 0 ? "#d55e00" : "#0072b2";
      g.globalAlpha = 0.25 + 0.75 * Math.min(1, Math.abs(value));
      g.fill();
      g.globalAlpha = 1;
      g.strokeStyle = theme === "dark" ? "#ffffff" : "#1d2433";
      g.stroke();
      if (value < 0) {
        g.beginPath();
        g.moveTo(at(x) - 5, height - at(y));
        g.lineTo(at(x) + 5, height - at(y));
        g.strokeStyle = "#ffffff";
        g.lineWidth = 3;
        g.stroke();
        g.lineWidth = 2;
      }
    }
  }

  const element = make(
    "div",
    { class: "field wide", "data-field": "points" },
    make("p", { class: "hint" }, "Click adds +1, shift-click or right click \u22121."),
    make("div", { class: "modes", role: "group", "aria-label": "What a click does" }, ...buttons, clear),
    canvas,
    make("label", { for: "setting-points" }, "Points x1,x2,y; \u2026"),
    text,
    fault,
  );
  return {
    element,
    setting: "points",
    paint,
    set: (value) => {
      if (document.activeElement !== text) text.value = value;
      points = parse(value);
      paint(theme);
    },
    show: (shown) => {
      element.hidden = !shown;
    },
    fault: (sentence) => {
      fault.textContent = sentence;
      fault.hidden = !sentence;
    },
  };
}
