// Elements, and how a part of the page becomes another one while focus and scrolling stay.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Attributes that are null or false are left out; `style` is an object of properties. */
export function h(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function s(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "style") {
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    } else {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A drawing from its path, for buttons. */
export function icon(path) {
  return s(
    "svg",
    { viewBox: "0 0 20 20", "aria-hidden": "true", fill: "none", stroke: "currentColor", "stroke-width": 1.6 },
    s("path", { d: path, "stroke-linecap": "round", "stroke-linejoin": "round" }),
  );
}

/** Give `place` these children, changing as little as possible. */
export function show(place, ...children) {
  const fresh = place.cloneNode(false);
  fresh.append(...children.flat(4).filter(Boolean));
  morphChildren(place, fresh);
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset.key : undefined;
}

function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  // What a person has opened stays open.
  const kept = old.nodeName === "DETAILS" ? ["style", "open"] : ["style"];
  for (const { name } of [...old.attributes]) {
    if (!kept.includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (!kept.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  morphChildren(old, fresh);
  if (old.nodeName === "SELECT" && old.value !== fresh.value) old.value = fresh.value;
}

function morphChildren(old, fresh) {
  const wanted = new Set([...fresh.childNodes].map(keyOf).filter((key) => key !== undefined));
  const known = new Map();
  for (const child of [...old.childNodes]) {
    const key = keyOf(child);
    if (key === undefined) continue;
    if (wanted.has(key)) known.set(key, child);
    else child.remove();
  }
  let at = old.firstChild;
  for (const want of [...fresh.childNodes]) {
    const key = keyOf(want);
    const have = key === undefined ? (at && keyOf(at) === undefined ? at : null) : known.get(key);
    if (!have) {
      old.insertBefore(want, at);
    } else {
      if (have === at) at = at.nextSibling;
      else old.insertBefore(have, at);
      morph(have, want);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
