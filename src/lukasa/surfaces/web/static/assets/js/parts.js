// The building blocks of views: times, badges, problems, empty states, dialogs, toasts.
import { drawing, h, put } from "./dom.js";

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

/** A count with its word: 1 entry, 2 entries. */
export const many = (count, word) =>
  `${number(count, 0)} ${count === 1 ? word : /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`}`;

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
    null,
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
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), action ? 9000 : 5000);
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
