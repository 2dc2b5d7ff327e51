// The only code that creates elements. Text becomes text nodes; no string ever becomes markup.

const SVG = "http://www.w3.org/2000/svg";
const LINK = /^(#|\/(?!\/)|https?:\/\/|mailto:)/i;

/** An element: h("a", {href: "#/x", onclick: fn, class: "b"}, "text", node, [more]). Nothing else is ever appended. */
export function h(tag, props, ...children) {
  return dress(document.createElement(tag), props, children);
}

/** An element of a drawing, as h makes elements. */
export function svg(tag, props, ...children) {
  return dress(document.createElementNS(SVG, tag), props, children);
}

function dress(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      if (typeof value !== "function") throw new TypeError(`${name} takes a function`);
      node.addEventListener(name.slice(2), value);
    } else if (name === "value" && "value" in node) node.value = value;
    else if (name === "checked") node.checked = Boolean(value);
    else if (name === "href") {
      if (LINK.test(String(value))) node.setAttribute("href", value);
    } else if (name === "style" || name === "srcdoc") throw new TypeError(`${name} is not set from here`);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  fill(node, children);
  return node;
}

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === true) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replace the children of a node. */
export function put(node, ...children) {
  node.replaceChildren();
  fill(node, children);
  return node;
}

/** A bar whose filled part is a share of one. */
export function meter(share, name, tone = "") {
  const part = h("span");
  part.style.setProperty("--part", `${Math.max(0, Math.min(1, share || 0)) * 100}%`);
  return h("div", { class: `meter ${tone}`, role: "img", "aria-label": name }, part);
}

// The page parses the server's markup (charts, rendered markdown) in an inert document, and rebuilds it from a short
// list of allowed elements. An element that is not on the list keeps only its text.

const DRAWN = new Set("svg g path line rect circle text title desc polyline".split(" "));
const DRAWN_WITH = new Set(
  `class d x y x1 x2 y1 y2 cx cy r rx width height points viewBox role aria-label
  text-anchor transform preserveAspectRatio`.split(/\s+/),
);

export function drawing(text) {
  const source = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (source.localName !== "svg") throw new Error("the server sent no drawing");
  return copied(
    source,
    (node) => DRAWN.has(node.localName) && document.createElementNS(SVG, node.localName),
    DRAWN_WITH,
  );
}

const WRITTEN = new Map(Object.entries({ h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6", h6: "h6" }));
for (const tag of "p ul ol li strong em s code pre blockquote hr br a table thead tbody tr th td".split(" "))
  WRITTEN.set(tag, tag);

export function prose(text) {
  const source = new DOMParser().parseFromString(text, "text/html").body;
  const element = (node) =>
    WRITTEN.has(node.localName) &&
    h(
      WRITTEN.get(node.localName),
      node.localName === "a" ? { href: node.getAttribute("href"), rel: "noreferrer noopener", target: "_blank" } : null,
    );
  return h(
    "div",
    { class: "prose" },
    [...source.childNodes].map((node) => copied(node, element, new Set())),
  );
}

function copied(node, element, attributes) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.nodeValue);
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  const made = element(node);
  if (!made) return document.createTextNode(node.textContent);
  for (const { name, value } of node.attributes) if (attributes.has(name)) made.setAttribute(name, value);
  fill(
    made,
    [...node.childNodes].map((child) => copied(child, element, attributes)),
  );
  return made;
}
