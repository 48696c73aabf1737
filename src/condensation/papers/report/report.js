// Filters, the place in the contents, copy buttons. The page is whole without it: only these are missing then.
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const contents = document.getElementById("contents");
const wide = matchMedia("(min-width: 64rem)");

for (const hidden of all(".with-script, .copy")) hidden.hidden = false;

// -- copy
for (const button of all(".copy")) {
  const source = button.parentElement.querySelector("pre");
  const say = (word) => {
    button.textContent = word;
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  };
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      say("Copied");
    } catch { // a browser that does not allow it: the text is marked, for the reader's own keys
      getSelection().selectAllChildren(source);
      say("Press Ctrl+C");
    }
  });
}

// -- the contents: a place that was chosen closes the panel of a small screen; where the reader is, is marked
contents.addEventListener("click", (event) => {
  if (event.target.closest("a") && contents.matches(":popover-open")) contents.hidePopover();
});
const entries = new Map(all("[data-figure]", contents).map((entry) => [entry.dataset.figure, entry]));
const places = all("article[id], tbody.claim[id], figure[id]").filter((place) => entries.has(place.id));
let current = null;
const mark = () => {
  const line = innerHeight * 0.3;
  const shown = places.filter((place) => place.offsetParent !== null);
  const entry = entries.get(shown.findLast((place) => place.getBoundingClientRect().top < line)?.id) ?? null;
  if (entry === current) return;
  current?.querySelector("a").removeAttribute("aria-current");
  current = entry;
  current?.querySelector("a").setAttribute("aria-current", "location");
  if (wide.matches) current?.scrollIntoView({ block: "nearest" });
};
let waiting = false;
const later = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; mark(); });
};
addEventListener("scroll", later, { passive: true });
addEventListener("resize", later);
mark();

// -- filters: claims that do not fit are hidden, and so are figures, papers and their entries that have none left
const filters = document.getElementById("filters");
if (filters) {
  const text = (element) => element.textContent.toLowerCase().replace(/\s+/g, " ");
  const figures = all("article.figure").map((article) => {
    const title = text(article.querySelector("h3"));
    const claims = all(".claim", article).map((claim) => {
      return { claim, verdict: claim.dataset.verdict, words: `${title} ${claim.id.slice(6)} ${text(claim)}`.toLowerCase() };
    });
    return { article, claims, title, paper: article.dataset.paper, entry: entries.get(article.id) };
  });
  const groups = all("section[data-group]").map((section) => {
    return { section, entry: all("[data-group]", contents).find((one) => one.dataset.group === section.dataset.group) };
  });
  const total = all(".claim").length;
  const nothing = document.getElementById("nothing");
  const reset = filters.querySelector("button[type=reset]");

  const apply = () => {
    const chosen = new FormData(filters);
    const [verdicts, papers] = [chosen.getAll("verdict"), chosen.getAll("paper")];
    const words = chosen.get("words").toLowerCase().replace(/\s+/g, " ").trim();
    const free = !verdicts.length && !papers.length && !words;
    let [count, left] = [0, 0];
    for (const { article, claims, title, paper, entry } of figures) {
      const fits = !papers.length || papers.includes(paper);
      let any = free || (fits && !claims.length && !verdicts.length && title.includes(words));
      for (const { claim, verdict, words: own } of claims) {
        claim.hidden = !(fits && (!verdicts.length || verdicts.includes(verdict)) && own.includes(words));
        any ||= !claim.hidden;
        count += !claim.hidden;
      }
      article.hidden = !any;
      if (entry) entry.hidden = !any;
      left += any;
    }
    for (const { section, entry } of groups) {
      section.hidden = !section.querySelector("article:not([hidden])");
      if (entry) entry.hidden = section.hidden;
    }
    nothing.hidden = left > 0;
    document.querySelector(".intro").hidden = !free;
    reset.hidden = free;
    const said = free ? `${total} claims` : `${count} of ${total} claims, ${left} of ${figures.length} figures`;
    for (const place of all("[data-count]")) place.textContent = said;
    mark();
    return free;
  };
  const remember = (free) => {
    const chosen = [...new FormData(filters)].filter(([, value]) => value);
    history.replaceState(null, "", location.href.split("#")[0] + (free ? "" : `#${new URLSearchParams(chosen)}`));
  };
  const showAll = () => {
    filters.reset();
    for (const box of all("input", filters)) box.type === "checkbox" ? (box.checked = false) : (box.value = "");
    remember(apply());
    scrollTo(0, 0);
  };
  const read = () => { // an address may name filters, or a place that they hide
    const hash = location.hash.slice(1);
    let place = null;
    try { place = document.getElementById(decodeURIComponent(hash)); } catch { /* no place has such a name */ }
    if (place?.closest("[hidden]")) {
      showAll();
      location.hash = hash;
      place.scrollIntoView();
    } else if (!place && hash.includes("=")) {
      const given = new URLSearchParams(hash);
      filters.elements.words.value = given.get("words") ?? "";
      for (const box of all("input[type=checkbox]", filters)) box.checked = given.getAll(box.name).includes(box.value);
      apply();
    }
  };
  filters.hidden = false;
  filters.addEventListener("input", () => { remember(apply()); scrollTo(0, 0); });
  filters.addEventListener("submit", (event) => event.preventDefault());
  reset.addEventListener("click", (event) => { event.preventDefault(); showAll(); filters.elements.words.focus(); });
  nothing.querySelector("button").addEventListener("click", showAll);
  addEventListener("hashchange", read);
  apply();
  read();
}
