/** The buttons of the bar and the keys of the page, and what they do. */

import { fold, NARROW } from "./controls.js";
import { find } from "./dom.js";
import { usable } from "./embed.js";
import { copy, menu, savePicture, saveText } from "./export.js";
import { help, listen } from "./keys.js";
import { hush, say } from "./notices.js";

const KEPT = 550; // ms after which the address is that of what is shown
const LONG = 4000; // ms for which the page says that a link is copied

/**
 * @param {object} page the parts of the page; `controls` and `tour` are functions, for they come with the first message
 */
export function wire({ embedded, state, player, cards, map, theme, link, attempt, keep, again, controls, tour }) {
  /** Another initialization; for a saved run or a cell, its next seed. */
  function reseed() {
    const { opened, source } = state;
    if (opened?.settings) controls().roll();
    else if (source?.do === "run") again((opened.seed + 1) % opened.seeds.length);
    else if (source?.do === "cell") again(((source.seed ?? 0) + 1) % map.seeds);
  }

  /** Back to the moment before that is known. */
  function back() {
    const now = player.wish ?? state.frame?.step ?? 0;
    const saved = state.opened?.steps?.filter((step) => step < now).at(-1);
    player.seek(saved ?? state.curve.before(now));
  }

  /** Closes one thing: what lies on top. */
  function close() {
    if (cards.large) cards.enlarge(null);
    else if (state.pinned) {
      state.pinned = state.hover = null;
      cards.repaint();
    } else tour()?.close();
  }

  async function share() {
    await new Promise((done) => setTimeout(done, KEPT));
    const copied = await copy(location.href);
    say("share", copied ? "The link is copied." : `The link: ${location.href}`, "info");
    if (copied) setTimeout(() => hush("share"), LONG);
  }

  const press = (id, act) => find(id).addEventListener("click", act);
  press("play", () => player.toggle());
  press("step", () => player.step());
  press("rewind", () => player.rewind());
  press("dice", reseed);
  press("fold", () => fold());
  if (embedded || !usable("fold") || matchMedia(NARROW).matches) fold();
  press("tour", () => tour()?.toggle());
  press("theme", () => theme.toggle());
  press("help", help);
  press("share", () => attempt(share));
  press("skip", (event) => {
    event.preventDefault();
    find("main").focus();
  });
  menu((kind) =>
    attempt(() => {
      if (kind === "png" || kind === "svg") return savePicture(cards.visible(), state, kind, cards.large ?? "");
      return saveText((message) => link.request(message), state, kind);
    }),
  );
  const by = (id, act) => () => usable(id) && act(); // a key does what its button would do
  listen(
    {
      toggle: by("play", () => player.toggle()),
      step: by("step", () => player.step()),
      rewind: by("rewind", () => player.rewind()),
      latest: by("scrub", () => player.latest()),
      fold: by("fold", fold),
      tour: by("tour", () => tour()?.toggle()),
      seed: by("dice", reseed),
      back: by("scrub", back),
      close,
    },
    (speed) => {
      player.setSpeed(speed);
      keep();
    },
  );
}
