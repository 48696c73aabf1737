/** Small helpers to build and find elements. */

/**
 * An element with attributes, listeners (`onclick: f`) and children.
 * @param {string} tag
 * @param {Object<string, any>} [attributes] null and false leave an attribute out
 * @param {...(Node|string)} children
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/** @param {string} id */
export const find = (id) => document.getElementById(id);

/** Writes text only where it differs, so that an unchanged page is not laid out again. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute only where it differs. */
export function mark(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Scrolls within the page until an element is seen. A page around this one, where there is one, stays where it is. */
export function reveal(element) {
  const box = [find("main"), document.querySelector(".page")].find((one) => one.scrollHeight > one.clientHeight + 1);
  if (!box) return;
  const [inner, outer] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
  if (inner.top < outer.top) box.scrollTop += inner.top - outer.top;
  else if (inner.bottom > outer.bottom) box.scrollTop += Math.min(inner.bottom - outer.bottom, inner.top - outer.top);
}

/**
 * A call that happens at most once in `wait` ms; the last one is never lost.
 * @param {() => void} call
 * @param {number} wait
 */
export function throttle(call, wait) {
  let last = -Infinity;
  let timer = 0;
  return () => {
    if (timer) return;
    const left = last + wait - performance.now();
    const run = () => {
      timer = 0;
      last = performance.now();
      call();
    };
    if (left <= 0) run();
    else timer = setTimeout(run, left);
  };
}
