/**
 * The player: paused or playing, and which moment is wished for. It pulls: the next frame is asked for when the last one has
 * come, at most one request is under way, and at most one frame is drawn in an animation frame.
 */

import { Lost } from "./link.js";

const AHEAD = 2; // frames that may wait to be drawn before the next is asked for
/** Steps a frame that the keys 1 to 9 choose. */
export const SPEEDS = [1, 2, 5, 10, 20, 50, 200, 1000, 5000];
export const FASTEST = SPEEDS[SPEEDS.length - 1];

/**
 * @typedef {Object} Screen what the player needs of the page
 * @property {(message: object) => Promise<object>} ask sends a frame request
 * @property {(frame: object) => void} take a frame has come (its curve rows are new); called for every frame
 * @property {(frame: object) => void} draw a frame is to be drawn; called in an animation frame
 * @property {() => void} changed playing, speed or wish are not what they were
 * @property {(sentence: string) => void} fail a frame could not be had
 */
export class Player {
  playing = false;
  speed = 10;
  /** @type {number|null} the step that is wished for, until it is reached */
  wish = null;
  /** @type {object|null} the frame that came last */
  frame = null;
  /** @type {object|null} what is open: `live`, `steps` */
  opened = null;
  #screen;
  #held = true;
  #asking = false;
  #single = 0;
  #resume = false;
  #unsettled = false;
  #epoch = 0;
  #queue = [];
  #drawing = 0;

  /** @param {Screen} screen */
  constructor(screen) {
    this.#screen = screen;
    document.addEventListener("visibilitychange", () => this.#pump());
  }

  /** Whether it plays, or will when the step that is wished for is reached. */
  get going() {
    return this.playing || this.#resume;
  }

  /** Plays; what has been watched to its end, from its beginning. */
  play() {
    if (this.playing) return;
    const again = Boolean(this.frame?.ended && this.frame.step > 0 && !this.opened.live);
    this.wish = again ? 0 : null;
    this.#resume = again;
    this.playing = !again;
    this.#changed();
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.#unsettled = true;
    this.#changed();
  }

  toggle() {
    if (this.wish > (this.frame?.end ?? 0)) this.seek(this.frame?.step ?? 0); // not so far, then
    else if (this.wish !== null) this.#resume = !this.#resume;
    else if (this.playing) this.pause();
    else this.play();
  }

  /** @param {number} speed steps a frame */
  setSpeed(speed) {
    this.speed = Math.min(FASTEST, Math.max(1, Math.round(speed) || 1));
    this.#changed();
  }

  /** Goes to a step and stays there. Only the latest wish counts. */
  seek(step) {
    this.playing = this.#resume = false;
    this.#single = 0;
    this.wish = Math.max(0, Math.round(step));
    this.#changed();
  }

  /** One step on; in a saved run, one saved moment. */
  step() {
    const saved = this.opened?.steps?.find((step) => step > (this.wish ?? this.frame?.step ?? 0));
    if (this.opened?.steps) {
      if (saved !== undefined) this.seek(saved);
      return;
    }
    this.playing = false;
    this.wish = null;
    this.#single++;
    this.#changed();
  }

  rewind() {
    this.seek(0);
  }

  latest() {
    this.seek(this.frame?.end ?? 0);
  }

  /** The same moment again, with all that is computed now and then only. */
  settle() {
    this.#unsettled = true;
    this.#pump();
  }

  /** Asks for nothing until `begin`: what is shown is about to change. */
  hold() {
    this.#held = true;
  }

  /** Goes on after `hold` with what was open before. */
  release() {
    this.#held = false;
    this.#pump();
  }

  /**
   * Starts anew with something that was opened: goes to a step, then plays or stays.
   * @param {object} opened
   * @param {number} step
   * @param {boolean} play
   */
  begin(opened, step, play) {
    this.#epoch++;
    this.#queue.length = 0;
    this.#asking = false;
    this.#single = 0;
    this.opened = opened;
    this.frame = null;
    this.wish = step > 0 ? step : null;
    this.playing = play && this.wish === null;
    this.#resume = play && this.wish !== null;
    this.#unsettled = true;
    this.#held = false;
    this.#changed();
  }

  #changed() {
    this.#screen.changed();
    this.#pump();
  }

  #next() {
    // The first moment is at hand at once; to train further may need compiling.
    if (!this.frame) return { steps: 0, settled: !this.going && this.wish === null };
    if (this.wish !== null) return { at: this.wish };
    if (this.#single) return { steps: this.#single };
    if (this.playing) return { steps: this.speed };
    if (this.#unsettled) return { steps: 0, settled: true };
    return null;
  }

  async #pump() {
    if (this.#asking || this.#held || document.hidden || this.#queue.length >= AHEAD) return;
    const message = this.#next();
    if (!message) return;
    const epoch = this.#epoch;
    this.#asking = true;
    if (message.steps && !this.playing) this.#single = 0;
    if (message.settled) this.#unsettled = false; // `settle` may ask again before the answer comes
    try {
      const frame = await this.#screen.ask({ do: "frame", ...message });
      if (epoch !== this.#epoch) return;
      this.#asking = false;
      this.#take(frame, message);
    } catch (error) {
      if (epoch !== this.#epoch) return;
      this.#asking = false;
      if (error instanceof Lost) {
        this.#held = true;
        return;
      }
      this.playing = false;
      this.wish = null;
      this.#unsettled = false;
      this.#screen.changed();
      this.#screen.fail(error.message);
      return;
    }
    this.#pump();
  }

  #take(frame, message) {
    const stuck = frame.ended || frame.diverged !== null || !this.opened.live;
    if (message.at !== undefined) {
      const onTheWay = frame.step < message.at && frame.end < message.at && !stuck;
      if (!onTheWay && this.wish === message.at) {
        this.wish = null;
        this.playing = this.#resume && (this.opened.live ? !stuck : !frame.ended);
        this.#resume = false;
      }
      this.#unsettled = true;
    } else if (!message.settled) {
      this.#unsettled = true;
      const before = this.frame?.step ?? -1;
      if (message.steps && (frame.ended || (frame.diverged !== null && frame.step <= before))) this.playing = false;
    }
    this.frame = frame;
    this.#screen.take(frame);
    this.#screen.changed();
    this.#queue.push(frame);
    if (!this.#drawing) this.#drawing = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#drawing = 0;
    const frame = this.#queue.shift();
    if (frame) this.#screen.draw(frame);
    if (this.#queue.length) this.#drawing = requestAnimationFrame(() => this.#draw());
    this.#pump();
  }
}
