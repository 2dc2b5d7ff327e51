// All entries: every tier as one table, with filters, sorting, and actions on many at once; and the search, as an
// agent would search.
import { h, meter, put } from "../dom.js";
import { hitCard, reasons } from "../entries.js";
import { bead, holds } from "../faces.js";
import { ask, badge, chip, doing, dropdown, empty, field, head, later, loading, notice, number, plural, time, toast, undoable } from "../parts.js";

const SIZE = 50;
const MOST = 500; // entries that one press may change

/** Facet: its name in the answer, the query of the page, the field of the request, the title, and words for values. */
const FACETS = [
  ["tier", "tier", "tiers", "Tier"],
  ["kind", "kind", "kinds", "Kind", { semantic: "fact", episodic: "event", procedural: "rule" }],
  ["state", "state", "states", "State"],
  ["tag", "tag", "tags", "Tag"],
  ["source", "source", "sources", "Source"],
  ["agent", "agent", "agents", "Written by"],
  ["category", "category", "categories", "Category"],
  ["curator", "curator", "curators", "Curator", { author: "you decided", agent: "an agent on its own", import: "imported" }],
];
const SORTS = { updated: "Last changed", created: "Written", relevance: "Relevance", importance: "Importance", reads: "Times read", text: "Text, A to Z" };
const SINGLES = ["name", "session", "conversation", "since", "until", "words"];

export async function show(page) {
  const { query } = page;
  const asked = query.get("q")?.trim();
  const world = { page, query, picked: new Map(), found: null };
  const [rows, bulk, choose] = [h("div", { class: "stack" }), h("div", { class: "bulk", hidden: true }), h("div", { class: "stack tight" })];
  world.bulk = bulk;
  world.again = async () => {
    world.found = await page.api.post("table", request(query), { repeatable: false });
    put(choose, filters(world));
    put(rows, listing(world));
    mark(world);
  };
  if (asked) query.set("words", asked);
  put(rows, loading());
  await world.again();
  return [
    head(
      asked ? `“${asked}”` : "All entries",
      asked ? "The best matches, as an agent would find them; then every entry that says these words. Looking counts as no use." : "Every memory of every tier. Looking at it here counts as no use.",
    ),
    h("div", { class: "stack" }, asked ? matches(page, asked) : null, asked ? h("h2", null, "Every entry that says this") : null, choose, bulk, rows),
  ];
}

function request(query) {
  const body = { sort: query.get("sort") || "updated", ascending: query.get("up") === "1", limit: SIZE, offset: Number(query.get("from") || 0) };
  for (const [, name, field] of FACETS) if (query.has(name)) body[field] = query.getAll(name);
  for (const name of SINGLES) if (query.get(name)) body[name] = ["since", "until"].includes(name) ? `${query.get(name)}T00:00:00+00:00` : query.get(name);
  if (query.get("all") === "1") body.everything = true;
  return body;
}

// The search

function matches(page, asked) {
  const box = later(
    () => page.api.post("read", question(page.query, asked), { repeatable: false }),
    ({ hits, notes }) => [
      h("h2", null, hits.length ? `${plural(hits.length, "best match", "best matches")}` : "No match"),
      notes.map((note) => notice("warn", note)),
      hits.length
        ? h("ul", { class: "list" }, hits.map((hit) => hitCard(page, hit, reasons(hit))))
        : h("p", { class: "quiet" }, "Try other words. Search needs no exact ones, if search by meaning is on (Settings)."),
    ],
  );
  return h("section", { class: "panel" }, box);
}

/** Return the question with the filters that a search knows. */
function question(query, asked) {
  const body = { query: asked, count: false, limit: 8, tiers: query.getAll("tier"), tags: query.getAll("tag") };
  for (const name of ["kind", "state", "source", "category", "curator"]) if (query.has(name)) body[name] = query.get(name);
  return body;
}

// Filters

const changed = (query, changes) => {
  const next = new URLSearchParams(query);
  next.delete("from");
  if (next.has("q")) next.delete("words");
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const one of [value].flat()) if (one !== "" && one != null) next.append(name, one);
  }
  return next;
};

function toggled(query, name, value) {
  const now = query.getAll(name);
  return changed(query, { [name]: now.includes(value) ? now.filter((one) => one !== value) : [...now, value] });
}

function filters(world) {
  const { page, query, found } = world;
  const link = (changes) => page.link("browse", changes);
  return [
    h(
      "div",
      { class: "row filterbar" },
      FACETS.filter(([facet, name]) => Object.keys(found.facets[facet]).length > 1 || query.has(name)).map(([facet, name, , title, words = {}]) =>
        dropdown(title, { class: "small" }, () => {
          const values = Object.entries(found.facets[facet]);
          return values.length
            ? values.map(([value, count]) =>
                h(
                  "a",
                  { href: link(toggled(query, name, value)), "aria-current": query.getAll(name).includes(value) ? "true" : null },
                  h("span", { class: "row between nowrap" }, h("span", null, words[value] ?? value), h("span", { class: "num quiet" }, number(count, 0))),
                ),
              )
            : h("p", { class: "small quiet" }, "Nothing to choose.");
        }),
      ),
      dropdown("When", { class: "small" }, (close) => when(world, close)),
      h("span", { class: "grow" }),
      dropdown(`Sort: ${SORTS[query.get("sort") || "updated"]}`, { class: "small" }, () => [
        Object.entries(SORTS).map(([value, title]) =>
          h("a", { href: link(changed(query, { sort: value, up: value === "text" ? "1" : "" })), "aria-current": (query.get("sort") || "updated") === value ? "true" : null }, title),
        ),
        h("hr"),
        h("a", { href: link(changed(query, { up: query.get("up") === "1" ? "" : "1" })) }, query.get("up") === "1" ? "The other way: highest first" : "The other way: lowest first"),
      ]),
    ),
    active(world, link),
  ];
}

function when(world, close) {
  const { page, query } = world;
  const [since, until] = ["since", "until"].map((name) => h("input", { type: "date", value: query.get(name) ?? "" }));
  const go = (event) => {
    event.preventDefault();
    close();
    page.go("browse", changed(query, { since: since.value, until: until.value }));
  };
  return h("form", { class: "stack tight", onsubmit: go }, field("Written since", since), field("Written before", until), h("button", { class: "first" }, "Show"));
}

/** Return the filters that hold as chips; pressing one takes it away. */
function active(world, link) {
  const { query, found } = world;
  const chips = [];
  const add = (label, changes) => chips.push(h("li", null, h("a", { class: "chip on", href: link(changes), title: "Take this filter away" }, label, h("span", { "aria-hidden": "true" }, "×"))));
  for (const [, name, , title, words = {}] of FACETS) for (const value of query.getAll(name)) add(`${title.toLowerCase()}: ${words[value] ?? value}`, toggled(query, name, value));
  for (const name of SINGLES) {
    if (!query.get(name) || (name === "words" && query.has("q"))) continue;
    const told = { name: "names", session: "from one session", conversation: "of one conversation", words: "says" }[name] ?? name;
    add(["session", "conversation"].includes(name) ? told : `${told} ${query.get(name)}`, changed(query, { [name]: "" }));
  }
  const hidden = ["forgotten", "superseded", "archived", "invalidated", "pruned"].reduce((sum, state) => sum + (found.facets.state[state] ?? 0), 0);
  const all = query.get("all") === "1";
  return h(
    "div",
    { class: "row" },
    h("span", { class: "strong", role: "status" }, plural(found.total, "memory"), found.cut ? " (of the newest 20,000)" : ""),
    chips.length ? h("ul", { class: "chips" }, chips) : null,
    chips.length > 1 ? h("a", { class: "small", href: world.page.link("browse", changed(new URLSearchParams(), { sort: query.get("sort") ?? "" })) }, "Clear all") : null,
    !query.has("state") && (hidden || all)
      ? h("a", { class: "small", href: link(changed(query, { all: all ? "" : "1" })) }, all ? "Hide retired ones" : `Show ${number(hidden, 0)} retired too`)
      : null,
  );
}

// The table

function listing(world) {
  const { page, query, found } = world;
  if (!found.rows.length)
    return [...query.keys()].some((key) => !["sort", "up", "from"].includes(key))
      ? empty("No memory like that", "Take a filter away, or look with other words.", h("a", { class: "button", href: page.link("browse") }, "Show all"))
      : empty("Nothing yet", "Agents add memories as they work, and you can add them yourself.", h("a", { class: "button first", href: page.link("add") }, "Add the first memory"));
  const whole = h("input", {
    type: "checkbox",
    "aria-label": "Select all on this page",
    onchange: () => {
      for (const row of found.rows) whole.checked ? world.picked.set(row.entry.id, row.entry) : world.picked.delete(row.entry.id);
      for (const box of body.querySelectorAll("input[type=checkbox]")) box.checked = whole.checked;
      mark(world);
    },
  });
  world.most = Math.max(1, ...found.rows.map((row) => row.relevance));
  const body = h("tbody", null, found.rows.map((row) => line(world, row)));
  return [
    h(
      "table",
      { class: "entries" },
      h(
        "thead",
        null,
        h("tr", null, h("th", { class: "pick" }, whole), sorted(world, "text", "Memory"), sorted(world, "relevance", "Relevance"), sorted(world, "importance", "Importance"), sorted(world, "reads", "Read"), sorted(world, "updated", "Changed")),
      ),
      body,
    ),
    pages(world),
  ];
}

function sorted(world, name, title) {
  const { page, query } = world;
  const now = (query.get("sort") || "updated") === name;
  const up = query.get("up") === "1";
  const next = now ? (up ? "" : "1") : name === "text" ? "1" : "";
  return h(
    "th",
    { scope: "col", class: name === "text" ? null : "num", "aria-sort": now ? (up ? "ascending" : "descending") : null },
    h("a", { href: page.link("browse", changed(query, { sort: name, up: next })) }, title, now ? h("span", { "aria-hidden": "true" }, up ? " ↑" : " ↓") : null),
  );
}

function line(world, { entry, relevance, reads }) {
  const { page, query } = world;
  const box = h("input", {
    type: "checkbox",
    checked: world.picked.has(entry.id),
    "aria-label": `Select: ${entry.content.slice(0, 60)}`,
    onchange: () => {
      box.checked ? world.picked.set(entry.id, entry) : world.picked.delete(entry.id);
      mark(world);
    },
  });
  const filter = (name, value, text) => h("a", { class: "tag", href: page.link("browse", toggled(query, name, value)) }, text);
  return h(
    "tr",
    { class: entry.unverified ? "unverified" : null },
    h("td", { class: "pick" }, box),
    h(
      "td",
      { class: "what" },
      h("div", { class: "row nowrap top" }, bead(entry), h("a", { class: "words", href: page.link("entry", entry.id) }, entry.content || "(empty)")),
      h(
        "div",
        { class: "under" },
        entry.state === "active" ? null : badge(entry.state),
        entry.unverified ? badge("unverified", "bad") : null,
        entry.sensitive ? badge("sensitive", "warn") : null,
        by(entry, filter),
        entry.tier === "workspace" ? null : filter("tier", entry.tier, holds(entry.tier, page.w)),
        entry.authority === "act" ? h("span", { title: "An agent may act on it." }, "agents may act on it") : null,
        entry.tags.map((tag) => filter("tag", tag, `#${tag}`)),
        time(entry.updated_at),
      ),
    ),
    h("td", { class: "num wide" }, meter(relevance / world.most, `relevance ${number(relevance, 2)}`), h("span", { class: "small quiet" }, number(relevance, 2))),
    h("td", { class: "num wide" }, number(entry.importance, 2)),
    h("td", { class: "num wide" }, reads ? `${number(reads, 0)}×` : "—"),
    h("td", { class: "num" }, time(entry.updated_at)),
  );
}

/** Say who wrote an entry, and from what: each leads to the rest of it. */
function by(entry, filter) {
  const writer = { author: "you", import: "imported" }[entry.curator] ?? entry.origin.principal;
  const told = ["user", "agent", "observer", "author", entry.origin.principal, ""].includes(entry.source) ? null : entry.source;
  return [filter("agent", entry.origin.principal, writer), told ? filter("source", told, `from ${told}`) : null];
}

function pages(world) {
  const { page, query, found } = world;
  const from = Number(query.get("from") || 0);
  if (found.total <= SIZE) return null;
  const to = (start) => {
    const next = changed(query, {});
    if (start) next.set("from", start);
    return page.link("browse", next);
  };
  const last = Math.floor((found.total - 1) / SIZE) * SIZE;
  const step = (start, text) => (start < 0 || start > last || start === from ? h("span", { class: "button", "aria-disabled": "true" }, text) : h("a", { class: "button", href: to(start) }, text));
  return h(
    "nav",
    { class: "row between", "aria-label": "Pages of the table" },
    h("div", { class: "row" }, step(0, "First"), step(from - SIZE, "Back")),
    h("span", { class: "quiet" }, `${number(from + 1, 0)} to ${number(Math.min(from + SIZE, found.total), 0)} of ${number(found.total, 0)}`),
    h("div", { class: "row" }, step(from + SIZE, "Next"), step(last, "Last")),
  );
}

// Many at once

function mark(world) {
  const { bulk, picked, found } = world;
  bulk.hidden = !picked.size;
  if (!picked.size) return;
  const said = h("div");
  const button = (text, work, tone) => h("button", { class: `small ${tone ?? ""}`, onclick: doing(said, work) }, text);
  const some = [...picked.values()];
  const gone = some.filter((one) => ["forgotten", "superseded", "archived", "invalidated", "pruned"].includes(one.state));
  put(
    bulk,
    h("span", { class: "strong", role: "status" }, `${plural(picked.size, "memory")} selected`),
    picked.size < found.total && found.total <= MOST ? button(`Select all ${number(found.total, 0)}`, () => selectAll(world), "plain") : null,
    gone.length < some.length ? button("Forget", () => forget(world), "danger") : null,
    gone.length ? button("Restore", () => restore(world)) : null,
    button("Tags …", () => tags(world)),
    button("Importance …", () => importance(world)),
    button("Let go", () => clear(world), "plain"),
    said,
  );
}

async function selectAll(world) {
  const { rows } = await world.page.api.post("table", { ...request(world.query), limit: MOST, offset: 0 }, { repeatable: false });
  for (const row of rows) world.picked.set(row.entry.id, row.entry);
  await world.again();
}

async function clear(world) {
  world.picked.clear();
  await world.again();
}

/** Do something to each entry, four at a time; return those that changed, and say why others did not. */
async function each(entries, work) {
  const left = [...entries];
  const [done, failed] = [[], []];
  const worker = async () => {
    for (let one = left.shift(); one; one = left.shift()) {
      try {
        await work(one);
        done.push(one);
      } catch (error) {
        failed.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  if (failed.length) toast(`${plural(failed.length, "memory")} stayed as ${failed.length === 1 ? "it was" : "they were"}: ${failed[0].message}`);
  return done;
}

async function change(world, words, entries, work, back) {
  const done = await each(entries, work);
  world.picked.clear();
  await world.again();
  if (!done.length) return;
  undoable(`${words} ${plural(done.length, "memory")}.`, async () => {
    const undone = await each(done, back);
    await world.again();
    toast(`As before: ${plural(undone.length, "memory")}.`);
  });
}

const path = (one, more = "") => `entries/${one.id}${more}`;
const RETIRED = new Set(["forgotten", "superseded", "archived", "invalidated", "pruned"]);

const forget = (world) =>
  change(
    world,
    "Forgot",
    [...world.picked.values()].filter((one) => !RETIRED.has(one.state)),
    (one) => world.page.api.drop(path(one)),
    (one) => world.page.api.post(path(one, "/undo")),
  );
const restore = (world) =>
  change(
    world,
    "Restored",
    [...world.picked.values()].filter((one) => RETIRED.has(one.state)),
    (one) => world.page.api.post(path(one, "/restore")),
    (one) => world.page.api.post(path(one, "/undo")),
  );

const patch = (world, words, entries, body) =>
  change(
    world,
    words,
    entries,
    (one) => world.page.api.patch(path(one), body(one), one.version),
    (one) => world.page.api.post(path(one, "/undo")),
  );

async function tags(world) {
  const known = Object.keys(world.found.facets.tag);
  const given = await ask("Tags", (close) => {
    const [add, drop] = [h("input", { autocomplete: "off", list: "known-tags" }), h("input", { autocomplete: "off", list: "known-tags" })];
    const go = (event) => {
      event.preventDefault();
      close([add.value, drop.value].map((text) => text.split(/[\s,]+/).map((one) => one.replace(/^#/, "")).filter(Boolean)));
    };
    return h(
      "form",
      { onsubmit: go },
      h("datalist", { id: "known-tags" }, known.map((tag) => h("option", { value: tag }))),
      field("Add", add, "One or more, with spaces between them."),
      field("Take away", drop),
      h("div", { class: "row end" }, h("button", { type: "button", onclick: () => close() }, "Cancel"), h("button", { class: "first" }, "Change tags")),
    );
  });
  if (!given) return;
  const [add, drop] = given;
  const next = (one) => [...new Set([...one.tags.filter((tag) => !drop.includes(tag)), ...add])];
  const some = [...world.picked.values()].filter((one) => next(one).join(" ") !== one.tags.join(" "));
  await patch(world, "Changed the tags of", some, (one) => ({ tags: next(one) }));
}

async function importance(world) {
  const given = await ask("Importance", (close) => {
    const shown = h("output", { class: "big" }, "0.5");
    const range = h("input", { type: "range", min: 0, max: 1, step: 0.05, value: 0.5, "aria-label": "Importance", oninput: () => put(shown, range.value) });
    const go = (event) => {
      event.preventDefault();
      close(Number(range.value));
    };
    return h(
      "form",
      { onsubmit: go },
      h("p", { class: "quiet" }, "0 is a trifle, 0.5 an ordinary fact, 1 what must never be missed."),
      h("div", { class: "row nowrap" }, range, shown),
      h("div", { class: "row end" }, h("button", { type: "button", onclick: () => close() }, "Cancel"), h("button", { class: "first" }, "Set importance")),
    );
  });
  if (given === undefined) return;
  await patch(world, "Set the importance of", [...world.picked.values()], () => ({ importance: given }));
}
