/** The page: everything is made here and wired together. */

import * as address from "./address.js";
import { wire } from "./buttons.js";
import { Cards } from "./cards.js";
import { Controls } from "./controls.js";
import { find, write } from "./dom.js";
import { embed, hideable } from "./embed.js";
import { savePicture } from "./export.js";
import { Header } from "./header.js";
import { busy, hush, noticeOf, say } from "./notices.js";
import { Player } from "./player.js";
import { Session } from "./session.js";
import { connect } from "./source.js";
import { libraryList, SweepMap } from "./sweepmap.js";
import { themes } from "./theme.js";
import { tip } from "./tip.js";
import { Tour } from "./tour.js";
import { VIEWS } from "./views/index.js";

const SPEED = 10;

/** What the views draw, the settings, and what the page keeps in the address. */
const state = {
  hello: null, opened: null, layer: null, frame: null, curve: null, spectra: null, hover: null, theme: "light", options: {},
  settings: null, source: null, layerName: null, pinned: null, own: address.read().own,
};
let controls = null;
let tour = null;
let isReady;
const ready = new Promise((done) => (isReady = done));

let following = true; // the address is read, not written, until what it says is open
const keep = address.keeper(() => {
  if (following || !state.opened) return location.hash;
  const { own, settings, source } = state;
  const shown = source?.do ?? "open";
  const chosen = shown === "open" ? settings : { seed: source.seed || 0 };
  const usual = shown === "open" ? { ...state.hello.defaults, ...(state.hello.recorded && { seed: null }) } : { seed: 0 };
  return address.format(chosen, usual, {
    step: (player.wish ?? state.frame?.step) || null,
    speed: player.speed === SPEED ? null : player.speed,
    scene: tour?.scene?.name,
    theme: own.theme && state.theme,
    layer: own.layer,
    view: own.view,
    head: own.head,
    run: shown === "run" ? source.name : null,
    sweep: map.name,
    cell: shown === "cell" ? source.cell : null,
  });
});

const player = new Player({
  ask: (message) => link.request({ ...message, reduce: state.settings.reduce }),
  take: (frame) => session.take(frame),
  draw: (frame) => {
    if (frame.key !== state.opened.key) return; // of what was open before
    if (!session.suits(frame)) return; // of a layer that was shown before
    state.frame = frame;
    session.suit(frame);
    if (!playground.frames++) performance.mark("first picture");
    header.read(state);
    header.show(state);
    cards.paint(state);
    say("frame", frame.message ?? "", "info");
    keep();
    isReady();
  },
  changed: () => {
    header.show(state);
    keep();
  },
  fail: (sentence) => say("request", sentence),
});
const header = new Header(player, keep);

const cards = new Cards(find("cards"), VIEWS, find("speaker"), {
  hover: (hover, lines, at) => {
    tip(lines, at);
    const next = hover ?? state.pinned;
    if (same(next, state.hover)) return;
    state.hover = next;
    cards.repaint();
  },
  click: (hit) => {
    if (hit.step !== undefined) player.seek(hit.step);
    else if (hit.unit !== undefined) state.pinned = state.pinned?.unit === hit.unit ? null : { unit: hit.unit };
  },
  save: (card, kind) => attempt(() => savePicture([card], state, kind, card.view.name)),
});

const map = new SweepMap(find("map"), {
  request: (message) => link.request(message),
  open: (name, cell, step) => session.enter({ do: "cell", name, cell, seed: 0 }, { step, play: !step }),
  tip,
  fail: (sentence) => say("map", sentence),
  state: () => state,
  closed: () => {
    document.body.classList.remove("mapped");
    if (state.source?.do === "cell") leave();
    keep();
  },
});

const theme = themes(
  () => state.own.theme,
  (name) => {
    state.theme = name;
    controls?.paint(name);
    cards.repaint();
    map.paint();
    keep();
  },
);

const link = connect({
  hello: (hello) => {
    hush("link");
    const first = !state.hello;
    state.hello = hello;
    if (first) begin(hello);
    else if (state.source) session.again();
    else follow();
  },
  lost: () => {
    player.hold();
    say("link", "The connection to the server is lost. Reconnecting \u2026", "info");
  },
  refused: (sentence) => say("link", sentence),
  slow: busy,
});

const session = new Session(state, link, player, {
  opened: (opened) => {
    hush("request", "link-settings", "frame");
    document.title = `${opened.title} \u2013 condensation playground`;
    write(find("about"), opened.title);
    controls.opened(opened, state.source);
    header.opened(state);
    tour.mark(opened.settings);
    map.paint();
  },
  layer: (layer) => {
    controls.layer(state.layerName, session.views(state.layerName), state.own.view, layer?.count ?? null);
    controls.heads(layer?.attention?.drawn ?? 1, state.own.head);
    say("layer", "");
    if (!state.frame) return; // the picture of before stays until the first frame comes
    header.read(state);
    cards.repaint();
  },
  fail: (sentence, setting) => {
    if (!setting || !controls.fault(setting, sentence)) say("request", sentence);
  },
});

/** The same unit or step, or nothing both times. */
const same = (a, b) => ["unit", "other", "step"].every((name) => a?.[name] === b?.[name]);

/** Does something for the user; shows a notice if it fails. */
async function attempt(act) {
  try {
    await act();
  } catch (error) {
    say("request", error.message);
  }
}

/** What is shown, from another seed: of a saved run or a cell, by its place. */
function again(seed) {
  session.enter({ ...state.source, seed }, { step: state.opened.live ? 0 : (state.frame?.step ?? 0) });
}

/** Back from a saved run or a cell to a training by the settings. */
function leave() {
  session.enter({ do: "open", settings: state.settings }, { play: false });
}

/** Makes what needs the server's first message, then opens what the address says. */
function begin(hello) {
  controls = new Controls(find("panel"), hello, {
    open: (settings, setting) => session.enter({ do: "open", settings }, { setting }),
    reduce: (value) => {
      state.settings = { ...state.settings, reduce: value };
      player.settle();
      keep();
    },
    layer: (name, view) => {
      Object.assign(state.own, { layer: name, view: session.views(name).length ? view : undefined });
      session.chooseLayer(name, view);
      keep();
    },
    head: (head) => {
      state.own.head = head;
      cards.repaint();
      keep();
    },
    seed: again,
    leave,
  });
  const own = libraryList(hello, ({ kind, name, settings }) => {
    if (kind === "training") session.enter({ do: "open", settings }, { play: true });
    else if (kind === "run") session.enter({ do: "run", name }, { play: false });
    else mapOf(name);
  });
  if (own && hello.recorded) controls.list(own);
  else if (own) find("panel").append(own);
  tour = new Tour(find("tour-card"), hello, {
    show: (settings, speed, how) => {
      if (speed) player.setSpeed(speed);
      session.enter({ do: "open", settings }, { step: 0, ...how });
    },
    watch: (name) => cards.watch(name),
    changed: keep,
  });
  find("tour").hidden = !hello.scenes.length;
  theme.apply();
  follow();
}

async function mapOf(name) {
  if (!(await map.show(name))) return;
  hush("map");
  document.body.classList.add("mapped");
  keep();
}

/** What the address says; where it names nothing to open, what a recording begins with. */
function wished() {
  const said = address.read();
  if (Object.keys(said.settings).length || said.own.scene || said.own.run || said.own.sweep) return said;
  const start = address.read(state.hello.start ?? "");
  return { settings: start.settings, own: { ...start.own, ...said.own } };
}

/** Opens what the address says; for a broken link, shows a notice and opens what an empty address opens. */
async function follow() {
  following = true;
  try {
    await goto(wished());
  } finally {
    following = false;
    keep();
  }
}

/** The request that opens what an address says. */
function requestOf({ settings, own }) {
  const scene = own.scene ? tour.find(own.scene) : null;
  const seed = Number(settings.seed) || 0;
  if (own.run) return { do: "run", name: own.run, seed };
  if (own.sweep && own.cell) return { do: "cell", name: own.sweep, cell: Number(own.cell), seed };
  return { do: "open", settings: { ...(scene ? tour.settings(scene) : state.hello.defaults), ...settings } };
}

async function goto({ settings, own }) {
  state.own = own;
  state.settings = { ...state.hello.defaults };
  player.setSpeed(Number(own.speed) || SPEED);
  const scene = own.scene ? tour.find(own.scene) : null;
  if (scene && !own.speed && scene.speed) player.setSpeed(scene.speed);
  if (scene) tour.enter(scene);
  else tour.close();
  if (own.scene && !scene) say("scene", `The tour has no scene ${own.scene}.`, "info");
  theme.apply();
  const step = Number(own.step) || 0;
  if (own.sweep) await mapOf(own.sweep);
  if ((await session.enter(requestOf({ settings, own }), { step, play: Boolean(scene) && !step })) !== false) return;
  const sentence = noticeOf("request");
  if (await session.enter(requestOf(address.read(state.hello.start ?? "")), { play: false })) {
    say("link-settings", `This link cannot be opened: ${sentence}`);
  }
}

const { embedded, unknown } = embed(VIEWS.map((view) => view.name));
if (unknown.length) say("hide", `There is no ${unknown.join(", ")} to hide. Known: ${hideable(VIEWS.map((view) => view.name)).join(", ")}.`);
addEventListener("hashchange", () => state.hello && follow());
wire({ embedded, state, player, session, cards, map, theme, link, attempt, keep, again, controls: () => controls, tour: () => tour });

const playground = {
  state,
  ready,
  frames: 0,
  player,
  request: (message) => link.request(message),
  step: () => player.step(),
  play: () => player.play(),
  pause: () => player.pause(),
  seek: (step) => player.seek(step),
  open: (settings, how) => session.enter({ do: "open", settings: { ...state.settings, ...settings } }, how),
};
window.playground = playground;
