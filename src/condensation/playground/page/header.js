/** The bar at the top: what is playing, how fast, where in time, and the numbers of the moment. */

import { find, make, mark, write } from "./dom.js";
import { FASTEST } from "./player.js";
import { CANNOT } from "./recorded.js";
import { num } from "./views/numbers.js";

const ROWS = [
  ["step", "step"],
  ["loss", "loss"],
  ["lines", "lines / predicted"],
  ["keff", "effective neurons"],
  ["accuracy", "accuracy"],
];

/** The least of 1, 2, 5 times a power of ten that is not below a number. */
function round(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return power * [1, 2, 5, 10].find((k) => k * power >= number);
}

export class Header {
  #player;
  #cells = {};
  #horizon = 100;
  #dragging = false;

  /**
   * @param {import("./player.js").Player} player
   * @param {() => void} moved the speed was changed by hand
   */
  constructor(player, moved) {
    this.#player = player;
    for (const [name, label] of ROWS) {
      const value = make("dd", { id: `read-${name}` }, "\u2013");
      const title = make("dt", {}, label);
      this.#cells[name] = { title, value, row: make("div", {}, title, value) };
    }
    find("readout").replaceChildren(...Object.values(this.#cells).map((cell) => cell.row));
    const speed = find("speed");
    speed.addEventListener("input", () => {
      player.setSpeed(FASTEST ** (Number(speed.value) / 100));
      moved();
    });
    const scrub = find("scrub");
    Object.assign(scrub, { min: "0", max: "1", step: "any", value: "0" });
    scrub.addEventListener("input", () => {
      this.#dragging = true;
      player.seek(this.#horizon * Number(scrub.value) ** 2);
    });
    scrub.addEventListener("change", () => {
      this.#dragging = false;
    });
  }

  /** Shows the player's state: called when it changed and with every frame drawn. */
  show(state) {
    const { playing, speed, wish, frame } = this.#player;
    const play = find("play");
    mark(play, "aria-label", playing ? "Pause" : "Play");
    play.classList.toggle("playing", playing);
    const slider = find("speed");
    if (Math.round(FASTEST ** (Number(slider.value) / 100)) !== speed) {
      slider.value = String((100 * Math.log(speed)) / Math.log(FASTEST));
    }
    write(find("speed-text"), `${speed} / frame`);
    mark(slider, "aria-valuetext", `${speed} ${speed === 1 ? "step" : "steps"} a frame`);
    const end = state.opened?.last ?? frame?.end ?? 0;
    if (!this.#dragging) this.#horizon = state.opened?.last ?? round(Math.max(end, wish ?? 0, 100));
    const step = state.frame?.step ?? 0;
    const scrub = find("scrub");
    const place = (value) => Math.sqrt(Math.min(1, value / Math.max(this.#horizon, 1)));
    if (!this.#dragging) scrub.value = String(place(wish ?? step));
    scrub.style.setProperty("--known", `${100 * place(end)}%`);
    mark(scrub, "aria-valuetext", `step ${step}`);
    const going = wish !== null && wish > end;
    write(find("horizon"), going ? `training to step ${wish}: ${Math.floor((100 * step) / wish)}%` : `of ${this.#horizon}`);
  }

  /** Something else was opened: the numbers of before are not its, and a recording may have no other seed of it. */
  opened({ hello, opened }) {
    const dice = find("dice");
    dice.disabled = Boolean(hello.recorded) && opened.seeds.length < 2;
    dice.title = dice.disabled ? CANNOT : "New initialization: another seed (n)";
    const { dataset } = find("main");
    for (const name of ["step", "loss", "count", "keff", "predicted", "key"]) delete dataset[name];
  }

  /** Shows the numbers of a frame. */
  read(state) {
    const { frame, layer } = state;
    const lines = frame.lines;
    const found = lines?.condensed ? String(lines.count) : "\u2013"; // groups of what is not condensed are no lines
    const texts = {
      step: String(frame.step),
      loss: frame.loss === null ? "not a number" : num(frame.loss),
      lines: `${found} / ${layer ? (layer.count ?? "?") : "\u2026"}`,
      keff: lines ? num(lines.k_eff) : "\u2013",
      accuracy: frame.accuracy === null || frame.accuracy === undefined ? "" : `${Math.round(100 * frame.accuracy)}%`,
    };
    for (const [name, text] of Object.entries(texts)) {
      write(this.#cells[name].value, text);
      this.#cells[name].row.hidden = !text;
    }
    const flow = frame.time !== null && frame.time !== undefined;
    write(this.#cells.step.title, flow ? `step, time ${num(frame.time)}` : "step");
    const main = find("main");
    main.dataset.key = frame.key;
    main.dataset.step = frame.step;
    main.dataset.loss = frame.loss ?? "";
    main.dataset.count = lines?.count ?? "";
    main.dataset.keff = lines?.k_eff ?? "";
    main.dataset.predicted = layer?.count ?? "";
  }
}
