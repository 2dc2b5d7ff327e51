// The building blocks of views. Use these before you make another:
//
//   head(title, lead, ...actions)      the title of a view (serif), one sentence, its buttons
//   panel(title, {more}, ...children)  a card with a heading, and a link to more of the same
//   faces(page, list)   (faces.js)     memories with their face: words, who said it with the quotation, where it
//                                      holds, what it cites, authority; `face` is one row, `bead` the dot of its tier
//   tone(tier)          (faces.js)     the class t0 … t4 that sets --tier, the colour of a tier
//   chip(text, detail, href)           a name to click, with a word about it; put them into ul.chips
//   toast(text, {label, run})          what just happened; undoable(text, undo) is one with Undo, for ten seconds
//   ask(title, build), confirm(…)      dialogs; `doing(where, work)` is the handler of any button that asks the server
//   empty(title, text, ...actions)     an empty state: what will be here, and the button that begins it
//   later(load, draw)                  a part that loads on its own; problem(error) if it cannot
//   spark(values, label)               a small bar chart; chart(load, caption) a large one from the server
//   dropdown(label, props, build)      a menu that a button opens
//   command(text), copyId(id)          a command, or an id, behind a copy button; no id is ever shown as a name
//   plural(count, one, many?)          “1 memory”, “12 memories”
//   explain()           (terms.js)     the one place that says what tier, curator, held … mean
//
// Tokens (base.css): distances --s1 … --s7, type --f-xs … --f-xxl, --serif for titles and large numbers only;
// --accent for what one can press; --good, --warn, --bad for how a thing stands; --tier-0 … --tier-4 for tiers.
import { drawing, h, put, svg } from "./dom.js";

const STEPS = [
  ["year", 31536000],
  ["month", 2592000],
  ["week", 604800],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** Return a time relative to now, with the exact one on hover. */
export function time(value) {
  if (!value) return h("span", { class: "quiet" }, "—");
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return h("span", null, value);
  return h("time", { datetime: date.toISOString(), title: date.toLocaleString() }, ago(date));
}

function ago(date) {
  const seconds = (date - Date.now()) / 1000;
  const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return Math.abs(seconds) < 45 ? "just now" : RELATIVE.format(Math.round(seconds / size), unit);
}

export const number = (value, digits = 3) =>
  value == null
    ? "—"
    : Number(value) !== 0 && Math.abs(value) < 0.001
      ? Number(value).toExponential(1)
      : Number(value).toLocaleString(undefined, { maximumFractionDigits: digits });

const TONES = {
  active: "good",
  accepted: "good",
  open: "warn",
  stored: "good",
  done: "good",
  current: "good",
  updated: "good",
  merged: "accent",
  replaced: "accent",
  running: "accent",
  held: "warn",
  stale: "warn",
  queued: "warn",
  pending: "warn",
  review: "warn",
  changed: "warn",
  discarded: "bad",
  dead: "bad",
  error: "bad",
  rejected: "bad",
  vanished: "bad",
  refused: "bad",
  warn: "warn",
  revoked: "bad",
  expired: "warn",
};
export const badge = (text, tone = TONES[text] ?? "") => (text ? h("span", { class: `badge ${tone}` }, text) : null);

/** Return the heading of a view, with its purpose and its actions. */
export function head(title, lead, ...actions) {
  return h(
    "div",
    { class: "head" },
    h("div", null, h("h1", null, title), lead ? h("p", { class: "lead" }, lead) : null),
    actions.length ? h("div", { class: "row" }, actions) : null,
  );
}

export function problem(error) {
  return h(
    "div",
    { class: "notice bad", role: "alert" },
    h("p", { class: "strong" }, error.message || String(error)),
    error.fix ? h("p", null, error.fix) : null,
    error.code ? h("p", { class: "small quiet" }, `${error.status || ""} ${error.code}`.trim()) : null,
  );
}

export const notice = (tone, ...children) => h("div", { class: `notice ${tone}`, role: "status" }, children);
export const loading = () => h("p", { class: "loading", role: "status" }, "Loading …");

export function empty(title, text, ...actions) {
  return h(
    "div",
    { class: "empty" },
    h("h2", null, title),
    h("p", null, text),
    actions.length ? h("div", { class: "row" }, actions) : null,
  );
}

/** Return an element that loads: first a notice, then the content, or the problem with a button to try again. */
export function later(load, draw) {
  const place = h("div", { class: "stack" });
  const run = async () => {
    put(place, loading());
    try {
      put(place, draw(await load()));
    } catch (error) {
      if (error.name !== "AbortError")
        put(place, problem(error), h("div", null, h("button", { onclick: run }, "Try again")));
    }
  };
  place.again = run;
  run();
  return place;
}

export function chart(load, caption) {
  return h(
    "figure",
    { tabindex: "0" },
    later(load, (text) => drawing(text)),
    caption ? h("figcaption", null, caption) : null,
  );
}

let ids = 0;
/** A labelled control. */
export function field(label, control, hint) {
  const id = control.id || `f${++ids}`;
  control.id = id;
  const said = hint ? h("span", { class: "hint", id: `${id}h` }, hint) : null;
  if (said) control.setAttribute("aria-describedby", `${id}h`);
  return h("div", { class: "field" }, h("label", { for: id }, label), control, said);
}

export function select(options, value, props) {
  const control = h(
    "select",
    props,
    options.map((o) => (Array.isArray(o) ? h("option", { value: o[0] }, o[1]) : h("option", { value: o }, o))),
  );
  control.value = value ?? "";
  return control;
}

/** Return the handler of a button: it ignores a second press while it works, and shows a problem in `where`. */
export function doing(where, work) {
  return async (event) => {
    event.preventDefault?.();
    const button = event.submitter ?? event.currentTarget;
    if (button.disabled) return;
    button.disabled = true;
    try {
      put(where);
      await work(event);
    } catch (error) {
      put(where, problem(error));
      where.scrollIntoView({ block: "nearest" });
    } finally {
      button.disabled = false;
    }
  };
}

/** Ask in a modal dialog. `build(close)` returns the content; the promise gives the argument of `close`, or undefined. */
export function ask(title, build) {
  return new Promise((resolve) => {
    const back = document.activeElement;
    let answer;
    const close = (value) => {
      answer = value;
      dialog.close();
    };
    const dialog = h(
      "dialog",
      { "aria-labelledby": "dialog-title" },
      h("div", { class: "stack" }, h("h2", { id: "dialog-title" }, title), build(close)),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      back?.focus?.();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function confirm(title, text, label, tone = "first") {
  return ask(title, (close) => [
    h("p", null, text),
    h(
      "div",
      { class: "row end" },
      h("button", { onclick: () => close(false) }, "Cancel"),
      h("button", { class: tone, onclick: () => close(true) }, label),
    ),
  ]);
}

/** Say what just happened. With an action it stays ten seconds, and while the pointer or the focus is on it. */
export function toast(text, action) {
  const node = h(
    "div",
    { class: "toast" },
    h("span", null, text),
    action
      ? h(
          "button",
          {
            class: "small",
            onclick: () => {
              node.remove();
              action.run();
            },
          },
          action.label,
        )
      : null,
  );
  let timer = 0;
  const stay = () => clearTimeout(timer);
  const fade = () => {
    stay();
    timer = setTimeout(() => node.remove(), action ? 10000 : 5000);
  };
  for (const [name, does] of Object.entries({ pointerenter: stay, focusin: stay, pointerleave: fade, focusout: fade }))
    node.addEventListener(name, does);
  document.getElementById("toasts").append(node);
  fade();
}

/** Say what just happened, with Undo for ten seconds. */
export const undoable = (text, undo) =>
  toast(text, {
    label: "Undo",
    run: async () => {
      try {
        await undo();
      } catch (error) {
        toast(error.message);
      }
    },
  });

/** Return a card with a heading. `more` stands at its right: a link to all of it. */
export const panel = (title, { more = null, ...props } = {}, ...children) =>
  h("section", { class: "panel", ...props }, h("header", null, h("h2", null, title), more), children);

export const chip = (text, detail, href) =>
  h(href ? "a" : "span", { class: "chip", href }, text, detail ? h("span", null, detail) : null);

export const plural = (count, one, many = one.endsWith("y") ? `${one.slice(0, -1)}ies` : `${one}s`) =>
  `${number(count, 0)} ${count === 1 ? one : many}`;

/** Return a button that opens a menu. `build(close)` returns what is in it, each time it opens. */
export function dropdown(label, props, build) {
  const inside = h("div", { class: "popup", hidden: true });
  const button = h("button", { "aria-expanded": "false", ...props, onclick: () => (inside.hidden ? open() : close()) }, label, " ▾");
  const place = h("div", { class: "drop-down" }, button, inside);
  const away = (event) => place.contains(event.target) || close();
  const close = () => {
    inside.hidden = true;
    button.setAttribute("aria-expanded", "false");
    document.removeEventListener("click", away);
  };
  const open = async () => {
    put(inside, await build(close));
    inside.hidden = false;
    button.setAttribute("aria-expanded", "true");
    document.addEventListener("click", away);
    inside.querySelector("a, button")?.focus();
  };
  place.addEventListener("keydown", (event) => {
    if (inside.hidden) return;
    const items = [...inside.querySelectorAll("a, button")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") close(), button.focus();
    else if (step) items.at((items.indexOf(document.activeElement) + step) % items.length).focus();
    else return;
    event.preventDefault();
  });
  return place;
}

const copied = (text) =>
  navigator.clipboard.writeText(text).then(
    () => toast("Copied."),
    () => toast("The browser does not let this page copy."),
  );

/** Return a command with a button that copies it. */
export const command = (text) =>
  h(
    "div",
    { class: "command" },
    h("code", null, text),
    h("button", { class: "small", "aria-label": `Copy: ${text}`, onclick: () => copied(text) }, "Copy"),
  );

export const copyId = (id) =>
  h("button", { class: "plain small copy", type: "button", title: id, onclick: () => copied(id) }, "Copy id");

/** Draw numbers as small bars, the last at the right. */
export function spark(values, label) {
  const most = Math.max(1, ...values);
  const step = 100 / values.length;
  return svg(
    "svg",
    { class: "spark", viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img", "aria-label": label },
    values.map((value, i) => {
      const tall = value ? Math.max(3, (38 * value) / most) : 1.5;
      const where = { x: (i * step + step * 0.14).toFixed(1), y: (40 - tall).toFixed(1), height: tall.toFixed(1) };
      return svg("rect", { ...where, width: (step * 0.72).toFixed(1), rx: 1, class: value ? null : "none" });
    }),
  );
}

export function table(heads, rows, { numeric = [], name } = {}) {
  const side = (i) => (numeric.includes(i) ? "num" : null);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    h(
      "table",
      null,
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          heads.map((t, i) => h("th", { scope: "col", class: side(i) }, t)),
        ),
      ),
      h(
        "tbody",
        null,
        rows.map((cells) =>
          h(
            "tr",
            null,
            cells.map((cell, i) => h("td", { class: side(i) }, cell)),
          ),
        ),
      ),
    ),
  );
}

export const facts = (pairs) =>
  h(
    "dl",
    { class: "facts" },
    Object.entries(pairs)
      .filter(([, v]) => v !== null && v !== undefined && v !== "" && v !== false)
      .map(([k, v]) => [h("dt", null, k), h("dd", null, v)]),
  );
