/** A recording in place of a server: the same requests, answered by messages that were kept (see `_recorder.py`). */

import { decode, Refused } from "./link.js";
import { decodeTrack, derive } from "./tracks.js";

const TICK = 1000 / 60; // ms of a frame of a training that plays
const LONGEST = 150; // ms that the next moment keeps the player waiting
const ANEW = "This page is a recording, which trains nothing: `condensation play` does.";

/** What a recording cannot do, and the command that can; for the controls that are disabled. */
export const CANNOT = "A recording cannot be changed. To train with other settings, run condensation play.";

const rest = (ms) => new Promise((done) => setTimeout(done, ms));

/** Whether two settings train the same. */
const same = (one, other) => Object.entries(one).every(([name, value]) => name === "reduce" || String(other[name]) === value);

/**
 * It has the interface of a Link.
 * @typedef {import("./link.js").Ears} Ears
 */
export class Recorded {
  open = true;
  #lines;
  #entries = [];
  #entry = null;
  #key = 0;
  #layer = null;
  #shown = 0;

  /**
   * @param {string} text lines of base64, the hello first
   * @param {Ears} ears
   */
  constructor(text, ears) {
    this.#lines = text.trim().split("\n");
    this.#begin(ears);
  }

  async #begin(ears) {
    try {
      const hello = await this.#part(0);
      this.#entries = hello.recorded;
      ears.hello(hello);
    } catch (error) {
      ears.refused("This browser cannot read the recording: it needs a newer one.");
      throw error;
    }
  }

  /** The message on a line. */
  async #part(number) {
    const bytes = Uint8Array.from(atob(this.#lines[number]), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return decode(await new Response(stream).arrayBuffer());
  }

  /**
   * @param {object} message as to a server
   * @returns {Promise<object>} the answer; rejects with Refused
   */
  async request(message) {
    switch (message.do) {
      case "open":
        return this.#open(({ source }) => source.do === "open" && same(source.settings, message.settings));
      case "run":
        return this.#open(({ source }) => source.name === message.name && source.seed === (message.seed ?? 0));
      case "layer":
        return this.#choose(message.layer, message.view);
      case "frame":
        return this.#frame(message);
      case "export":
        return this.#text();
      default:
        throw new Refused(ANEW);
    }
  }

  async #open(wanted) {
    const entry = this.#entries.find(wanted);
    if (!entry) throw new Refused(`This recording does not have it. ${ANEW}`);
    const key = ++this.#key;
    const opened = await this.#part(entry.opened);
    this.#entry = entry;
    this.#shown = 0;
    return { ...opened, key };
  }

  #choose(name, view) {
    const { layers } = this.#entry;
    const own = layers.filter((layer) => layer.name === name);
    const place = own.find((layer) => layer.view === view) ?? own[0];
    const loading = this.#load(place, this.#key);
    this.#layer = loading;
    return loading.then(({ layer }) => layer);
  }

  /** A layer with its prediction and its frames. */
  async #load({ layer: number, frames, heads }, key) {
    const wanted = [number, frames, ...(heads ? [heads] : [])];
    const [layer, kept, shared] = await Promise.all(wanted.map((one) => this.#part(one)));
    const values = ({ tracks, arrays }) => tracks.map((track) => ({ ...track, values: decodeTrack(track, arrays[track.name]) }));
    const [all, curves] = [[kept, shared].filter(Boolean).flatMap(values), ({ name }) => name === "spectra"];
    const tracks = all.filter((track) => !curves(track));
    for (const { values: rows, rows: { length }, shape: [width] } of all.filter(curves)) {
      layer.arrays.spectra = rows;
      layer.shapes.spectra = [length, width];
    }
    return { layer: { ...layer, key, prediction: number }, frames: kept.frames, texts: kept.texts, tracks };
  }

  async #frame({ at, steps }) {
    const { frames, layer, tracks } = await this.#layer;
    const moment = at === undefined ? later(frames, this.#shown, steps) : nearest(frames, at);
    const before = frames[this.#shown] ?? frames[0];
    this.#shown = moment;
    const { step } = frames[moment];
    if (steps) await rest(Math.min(LONGEST, (TICK * (step - before.step)) / steps)); // as long as these steps take
    const frame = { ...frames[moment], kind: "frame", key: layer.key, prediction: layer.prediction, arrays: {}, shapes: {} };
    for (const { name, rows, shape, values } of tracks) {
      if (rows[moment] < 0) continue;
      const size = shape.reduce((product, side) => product * side, 1);
      frame.arrays[name] = values.subarray(rows[moment] * size, (rows[moment] + 1) * size);
      frame.shapes[name] = shape;
    }
    weigh(frame, layer);
    derive(frame, layer.arrays.basis);
    return frame;
  }

  async #text() {
    const { frames, texts } = await this.#layer;
    if (!texts) throw new Refused("a watched run has no experiment that could be exported");
    const steps = String(Math.max(1, frames[this.#shown].step));
    return { kind: "text", toml: texts.toml.join(steps), python: texts.python.join(steps) };
  }
}

/** The weights of a layer of attention are those of its matrix, all heads below each other. */
function weigh({ arrays, shapes }, { name, units, inputs }) {
  if (arrays.w) return;
  arrays.w = arrays[`head_${name.replace(/\d+$/, "")}`];
  shapes.w = [units, inputs];
}

/** The moment nearest to a step. */
const nearest = (frames, step) =>
  frames.reduce((best, frame, k) => (Math.abs(frame.step - step) < Math.abs(frames[best].step - step) ? k : best), 0);

/** The moment some steps after another one, or the next one if they are farther apart. */
function later(frames, shown, steps) {
  if (!steps) return Math.min(shown, frames.length - 1);
  const goal = frames[shown].step + steps;
  const found = frames.findLastIndex((frame) => frame.step <= goal);
  return Math.min(Math.max(found, shown + 1), frames.length - 1);
}
