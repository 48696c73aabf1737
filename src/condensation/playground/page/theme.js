/** Light or dark: as the system has it, unless the user or the link says otherwise. */

const KEY = "condensation-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // no storage in this browser: the system decides
  }
}

function store(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // no storage in this browser: the choice lasts as long as the page
  }
}

/**
 * @param {() => string|undefined} linked the theme that the address asks for
 * @param {(theme: "light"|"dark") => void} use
 */
export function themes(linked, use) {
  let chosen = null;
  const current = () => {
    const wish = chosen ?? linked() ?? stored();
    return wish === "light" || wish === "dark" ? wish : system.matches ? "dark" : "light";
  };
  const apply = () => {
    document.documentElement.dataset.theme = current();
    use(current());
  };
  system.addEventListener("change", apply);
  return {
    apply,
    toggle: () => {
      chosen = current() === "dark" ? "light" : "dark";
      store(chosen);
      apply();
    },
  };
}
