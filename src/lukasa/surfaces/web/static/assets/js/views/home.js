// Home: what Lukasa knows.
import { board } from "../board.js";
import { h, put } from "../dom.js";
import { agentName, bead, face, faces } from "../faces.js";
import { chip, command, head, later, number, panel, plural, problem, spark, time } from "../parts.js";
import { pairCard } from "../rivals.js";

const CONNECT = [
  ["Claude Code", "lukasa install claude-code"],
  ["Codex", "lukasa install codex"],
  ["Cursor", "lukasa install cursor"],
  ["Gemini CLI", "lukasa install gemini"],
  ["OpenCode", "lukasa install opencode"],
  ["Claude Desktop", "lukasa install claude-desktop"],
];

export async function show(page) {
  const known = await page.api.get("home");
  dispatchEvent(new CustomEvent("counts", { detail: { waiting: known.waiting, of: page.w } }));
  if (!known.memories && !known.waiting && !known.sessions) return beginning(page);
  return [
    head(`What Lukasa knows about ${page.w}`, sentence(page, known)),
    h(
      "div",
      { class: "home" },
      h("div", { class: "stack wide" }, theBoard(page), learned(page, known), lately(page, known)),
      h(
        "div",
        { class: "stack wide" },
        known.waiting ? waiting(page, known.waiting) : null,
        week(page, known),
        people(page, known),
        rules(page, known),
        fading(page, known),
        projects(page),
      ),
    ),
  ];
}

// The sentence

function sentence(page, known) {
  const to = (text, view, query) => h("a", { href: page.link(view, ...(query ? [new URLSearchParams(query)] : [])) }, text);
  const agents = [...new Set(Object.keys(known.agents).map(agentName))];
  return [
    to(plural(known.memories, "memory"), "browse"),
    known.people || known.things
      ? [" of ", known.people ? to(plural(known.people, "person", "people"), "people", { kind: "person" }) : null, known.people && known.things ? " and " : "", known.things ? to(plural(known.things, "thing"), "people", { kind: "thing" }) : null]
      : null,
    known.sessions ? [", from ", to(plural(known.sessions, "session"), "conversations"), agents.length ? ` with ${listed(agents)}` : ""] : null,
    ". ",
    known.used
      ? ["Used ", to(plural(known.used, "time"), "telemetry"), " this week, for ", to(plural(known.tokens, "token"), "telemetry"), "."]
      : "No agent has used it this week.",
  ];
}

const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);

// The first minute

function beginning(page) {
  return [
    head(`What Lukasa knows about ${page.w}`, "Nothing yet. Connect an agent, work as usual, and this board fills by itself."),
    h(
      "div",
      { class: "home" },
      board(page, { spots: [], apart: 9, id: [], words: [], tier: [], topic: [], x: [], y: [], size: [], left: [], act: [], since: [], until: [] }),
      h(
        "div",
        { class: "stack wide" },
        panel(
          "Connect an agent",
          {},
          h("p", { class: "quiet" }, "Run one of these in a terminal, in the folder of your project. Each shows what it would write before it writes it."),
          h(
            "ul",
            { class: "connect" },
            CONNECT.map(([name, text]) => h("li", null, h("span", { class: "strong" }, name), command(text))),
          ),
        ),
        panel(
          "Or begin by hand",
          {},
          h("p", { class: "quiet" }, "Write the first memory yourself, or bring what other programs remember."),
          h(
            "div",
            { class: "row" },
            h("a", { class: "button first", href: page.link("add") }, "Add the first memory"),
            h("a", { class: "button", href: page.link("transfer") }, "Bring your past"),
          ),
        ),
      ),
    ),
  ];
}

// The parts

function theBoard(page) {
  const place = later(() => page.api.get("board"), (laid) => board(page, laid));
  place.classList.add("at-1");
  return place;
}

function learned(page, { session, learned }) {
  if (!learned.length) return null;
  const more = session
    ? h("a", { href: page.link("conversations", session.id) }, "whole session")
    : h("a", { href: page.link("browse") }, "all entries");
  return panel(
    session ? "Your last session taught it" : "Recently learned",
    { more, class: "panel at-3" },
    session ? h("p", { class: "quiet small" }, `“${session.title || "untitled"}”, ${agentName(session.format)}, `, time(session.updated_at)) : null,
    faces(page, learned.map((one) => ({ ...one, when: one.entry.created_at }))),
  );
}

function lately(page, { lately }) {
  if (!lately.length) return null;
  return panel(
    "Recently used",
    { more: h("a", { href: page.link("log") }, "activity") },
    h(
      "ul",
      { class: "faces" },
      lately.slice(0, 4).map((one) => face(page, one.entry, { when: one.at, source: null, more: h("span", { class: "said" }, `given to ${agentName(one.by)}${one.times > 1 ? `, ${one.times} times this week` : ""}`) })),
    ),
  );
}

function waiting(page, count) {
  const place = h("div");
  const draw = async () => {
    try {
      const inbox = await page.api.get("review", { limit: 5 });
      const pair = inbox.rivals[0];
      put(place, pair ? pairCard(page, pair, draw) : others(page, inbox));
      const left = (await page.api.get("overview")) ?? {};
      const waits = left.held + left.proposals + left.rivals + left.submissions;
      dispatchEvent(new CustomEvent("counts", { detail: { waiting: waits, of: page.w } }));
      put(more, waits ? `all ${waits}` : "inbox");
    } catch (error) {
      put(place, problem(error));
    }
  };
  const more = h("a", { href: page.link("inbox") }, `all ${count}`);
  draw();
  return panel("Waiting for you", { more, class: "panel at-2" }, place);
}

const others = (page, inbox) =>
  inbox.entries.length
    ? [
        h("p", { class: "quiet small" }, "Held until you decide:"),
        h(
          "ul",
          { class: "faces" },
          inbox.entries.slice(0, 2).map((one) => face(page, one.entry, { quotes: one.quotes })),
        ),
        h("a", { class: "button", href: page.link("inbox") }, "Decide"),
      ]
    : h("p", { class: "quiet" }, "Nothing waits for you here. ", h("a", { href: page.link("inbox") }, "The inbox"), " has the rest.");

function week(page, { week, used, faded }) {
  const taught = week.reduce((sum, one) => sum + one.learned, 0);
  const figure = (count, text, view) => h("div", null, h("a", { class: "big", href: page.link(view) }, number(count, 0)), h("span", { class: "small quiet" }, text));
  return panel(
    "This week",
    {},
    h(
      "div",
      { class: "figures" },
      figure(taught, "learned", "timeline"),
      figure(used, "used", "telemetry"),
      figure(faded, "fading", "overview"),
      spark(
        week.map((one) => one.used),
        `Used by day: ${week.map((one) => `${one.day} ${one.used}`).join(", ")}`,
      ),
    ),
  );
}

function people(page, known) {
  if (!known.people) return null;
  return panel(
    "People",
    { more: h("a", { href: page.link("people") }, "map") },
    later(
      () => page.api.get("names", { kind: "person", limit: 10 }),
      ({ names }) =>
        h(
          "ul",
          { class: "chips" },
          names.map((one) => h("li", null, chip(one.name, number(one.entries, 0), page.link("browse", new URLSearchParams({ name: one.name }))))),
        ),
    ),
  );
}

function rules(page, { rules, always }) {
  if (!rules.length && !always.length) return null;
  return panel(
    "Rules and preferences",
    { more: h("a", { href: page.link("context") }, "what an agent sees") },
    h(
      "ul",
      { class: "rules" },
      rules.map((one) => h("li", null, bead(one), h("a", { class: "words", href: page.link("entry", one.id) }, one.content))),
    ),
    always.length
      ? h(
          "p",
          { class: "small quiet" },
          "In every prompt: ",
          always.map((name, n) => [n ? ", " : "", h("a", { href: page.link("pages", name) }, name)]),
        )
      : null,
  );
}

function fading(page, { fading }) {
  if (!fading.length) return null;
  return panel(
    "Fading",
    { more: h("a", { href: page.link("overview") }, "numbers") },
    h("p", { class: "quiet small" }, "Nobody has used these for long. Using one brings it back."),
    h(
      "ul",
      { class: "rules" },
      fading.map(({ entry }) => h("li", null, bead(entry), h("a", { class: "words", href: page.link("entry", entry.id) }, entry.content))),
    ),
  );
}

function projects(page) {
  const rest = page.workspaces.filter((one) => one.name !== page.w).slice(0, 12);
  if (!rest.length) return null;
  return panel(
    "Other projects",
    {},
    h(
      "ul",
      { class: "chips" },
      rest.map((one) => h("li", null, chip(one.name, null, `#/${encodeURIComponent(one.name)}/home`))),
    ),
  );
}
