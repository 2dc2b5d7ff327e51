// The search field of the bar: memories as you type, and every view, workspace, name and session to go to.
import { at, get } from "./api.js";
import { address } from "./frame.js";
import { h, put } from "./dom.js";
import { tone } from "./faces.js";
import { ask } from "./parts.js";
import { VIEWS } from "./views.js";

const WAIT = 140; // milliseconds without a key before the server is asked
const MOST = 6; // of one kind

/** Return the field. Ctrl-K, ⌘K and `/` lead to it from anywhere; arrows choose, Enter goes. */
export function findField(w, go) {
  const known = things(w);
  let options = [];
  let here = -1;
  let asked = null;
  let timer = 0;
  const list = h("div", { class: "found", id: "found", role: "listbox", "aria-label": "Found", hidden: true });
  const told = h("span", { class: "away", role: "status" });
  const words = h("input", {
    type: "search",
    name: "q",
    role: "combobox",
    "aria-label": "Find anything, or do something",
    "aria-expanded": "false",
    "aria-controls": "found",
    "aria-autocomplete": "list",
    placeholder: "Find anything, or do something …",
    autocomplete: "off",
    spellcheck: "false",
    onfocus: () => look(),
    oninput: () => look(),
    onkeydown: (event) => key(event),
  });
  const form = h(
    "form",
    { class: "find", role: "search", onsubmit: (event) => event.preventDefault() },
    words,
    h("kbd", { "aria-hidden": "true" }, /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘K" : "Ctrl K"),
    list,
    told,
  );
  form.addEventListener("focusout", (event) => form.contains(event.relatedTarget) || close());

  function close() {
    asked?.abort();
    clearTimeout(timer);
    list.hidden = true;
    words.setAttribute("aria-expanded", "false");
    words.removeAttribute("aria-activedescendant");
  }

  /** Show what is known at once, then what the server finds, unless another key comes first. */
  async function look() {
    asked?.abort();
    clearTimeout(timer);
    const text = words.value.trim();
    draw(text, [], Boolean(text));
    const mine = (asked = new AbortController());
    try {
      const others = await known();
      if (mine.signal.aborted) return;
      draw(text, [], Boolean(text), others);
      if (!text) return;
      await new Promise((done) => (timer = setTimeout(done, WAIT)));
      if (mine.signal.aborted) return;
      const found = await memories(w, text, mine.signal);
      if (!mine.signal.aborted) draw(text, found, false, others);
    } catch (error) {
      if (error.name !== "AbortError" && !mine.signal.aborted) say(error.message);
    }
  }

  function draw(text, found, waits, others = []) {
    const all = text ? { what: `Everything that says “${text}”`, kind: "Search", go: () => go(w, "browse", new URLSearchParams({ q: text })) } : null;
    const groups = Map.groupBy(
      [...found, ...matching([...actions(w, go), ...views(w, go), ...others.map((one) => ({ ...one, go: () => go(...one.to) }))], text), all].filter(Boolean),
      (one) => one.kind,
    );
    options = [...groups.values()].flat();
    here = options.length && text ? 0 : -1;
    put(
      list,
      [...groups].map(([kind, some]) =>
        h("div", { role: "group", "aria-label": kind }, h("div", { class: "group", "aria-hidden": "true" }, kind), some.map((one) => option(one))),
      ),
      waits ? h("p", { class: "quiet small" }, "Looking through memories …") : null,
    );
    list.hidden = document.activeElement !== words;
    words.setAttribute("aria-expanded", String(!list.hidden));
    if (!waits) say(options.length ? `${options.length} found` : "Nothing found");
    mark();
  }

  const option = (one) =>
    h(
      "div",
      {
        role: "option",
        id: `found-${options.indexOf(one)}`,
        "aria-selected": "false",
        onmousedown: (event) => {
          event.preventDefault();
          run(one);
        },
        onmousemove: () => {
          here = options.indexOf(one);
          mark();
        },
      },
      one.tier ? h("i", { class: `bead ${tone(one.tier)}`, "aria-hidden": "true" }) : null,
      h("span", { class: "what" }, one.what),
      one.more ? h("span", { class: "more" }, one.more) : null,
    );

  function mark() {
    for (const node of list.querySelectorAll("[role=option]")) {
      const lit = node.id === `found-${here}`;
      node.setAttribute("aria-selected", String(lit));
      if (lit) node.scrollIntoView({ block: "nearest" });
    }
    if (here >= 0 && !list.hidden) words.setAttribute("aria-activedescendant", `found-${here}`);
    else words.removeAttribute("aria-activedescendant");
  }

  function run(one) {
    words.value = "";
    words.blur();
    close();
    one.go();
  }

  const say = (text) => put(told, text);

  function key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && options.length) {
      if (list.hidden) look();
      else here = (here + step + options.length) % options.length;
      mark();
    } else if (event.key === "Enter" && options[here]) run(options[here]);
    else if (event.key === "Escape" && !list.hidden) {
      if (words.value) words.value = "";
      close();
    } else return;
    event.preventDefault();
  }
  return form;
}

// What can be found

/** Order by where the text is in the name: at its beginning, at the beginning of a word, or within. */
function matching(all, text) {
  if (!text) return [...Map.groupBy(all, (one) => one.kind)].flatMap(([kind, some]) => (kind === "Do" || kind === "Go to" ? some : some.slice(0, 3)));
  const wanted = plain(text);
  const rank = (one) => {
    const name = plain(one.what + " " + (one.also ?? ""));
    const place = name.indexOf(wanted);
    return place < 0 ? 9 : place === 0 ? 0 : name[place - 1] === " " ? 1 : 2;
  };
  const ranked = all.map((one) => [rank(one), one]).filter(([place]) => place < 9);
  ranked.sort(([one], [other]) => one - other);
  const counts = new Map();
  return ranked
    .map(([, one]) => one)
    .filter((one) => counts.set(one.kind, (counts.get(one.kind) ?? 0) + 1).get(one.kind) <= MOST);
}

const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

const actions = (w, go) =>
  [
    ["Remember something", "add put write new memory", [w, "add"]],
    ["Export or import", "backup file transfer download", [w, "transfer"]],
    ["Connect or remove an agent", "grant token access revoke", [w, "access"]],
    ["Try a model", "provider embedder chat settings", [w, "settings"]],
    ["See what an agent would see", "context preview prompt", [w, "context"]],
    ["Erase a person or a source", "scrub forget privacy", [w, "scrub"]],
  ].map(([what, also, to]) => ({ what, also, kind: "Do", go: () => go(...to) }));

const views = (w, go) =>
  Object.entries(VIEWS)
    .filter(([name]) => !["entry", "add"].includes(name))
    .map(([name, [what]]) => ({ what, also: name, kind: "Go to", go: () => go(w, name) }));

/** Return a function that gives the workspaces, names and sessions; it asks the server once for this field. */
function things(w) {
  let asked = null;
  const list = async () => {
    const api = at(w);
    const [{ workspaces }, { names }, { transcripts }] = await Promise.all([
      get("/v1/workspaces"),
      api.get("names", { limit: 500 }),
      api.get("transcripts", { limit: 200 }),
    ]);
    return [
      ...workspaces.filter((one) => one.name !== w).map((one) => ({ what: one.name, kind: "Workspaces", to: [one.name, "home"] })),
      ...names.map((one) => ({
        what: one.name,
        also: one.forms.join(" "),
        more: `${one.kind}, ${one.entries}`,
        kind: "People and things",
        to: [w, "people", new URLSearchParams({ name: one.name })],
      })),
      ...transcripts.map((one) => ({
        what: (one.title || "A session").slice(0, 90),
        more: new Date(one.started_at ?? one.created_at).toLocaleDateString(),
        kind: "Sessions",
        to: [w, "conversations", "session", one.id],
      })),
    ];
  };
  return () => (asked ??= list().catch((error) => {
    asked = null;
    throw error;
  }));
}

async function memories(w, text, signal) {
  const body = { query: text, count: false, limit: 8 };
  const { hits } = await at(w).post("read", body, { signal, repeatable: false });
  return hits.map(({ entry, excerpt }) => ({
    what: (excerpt || entry.content).slice(0, 160),
    more: entry.unverified ? "unverified" : entry.state === "active" ? "" : entry.state,
    tier: entry.tier,
    kind: "Memories",
    go: () => (location.hash = address(w, "entry", entry.id)),
  }));
}

// Keys

const KEYS = [
  ["/ or Ctrl K, ⌘K", "find anything, go anywhere, do something"],
  ["↑ ↓, Enter, Esc", "choose in a list, take it, leave it"],
  ["j k a e r o n b", "in “Waiting for you”: next, previous, approve, edit, reject, keep the old, use the new, both"],
  ["?", "these keys"],
];

const typing = (target) => /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;

addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  const palette = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
  const bare = !event.ctrlKey && !event.metaKey && !event.altKey && !typing(event.target);
  if (palette || (bare && event.key === "/")) {
    const field = document.querySelector(".bar .find input");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  } else if (bare && event.key === "?") {
    event.preventDefault();
    ask("Keys", (close) => [
      h("dl", { class: "facts" }, KEYS.map(([key, what]) => [h("dt", null, key), h("dd", null, what)])),
      h("div", { class: "row end" }, h("button", { class: "first", onclick: () => close() }, "Good")),
    ]);
  }
});
