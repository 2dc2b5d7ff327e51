// Activity: what was written or read by which agent just now, as sentences, and what memory costs in tokens.
import { h, put } from "../dom.js";
import { empty, head, number, panel, plural, spark, table, time } from "../parts.js";

const SURFACES = { cli: "in a terminal", web: "on this page", mcp: "over MCP", http: "over HTTP", hook: "in a hook", worker: "in the background", library: "from Python", langgraph: "in LangGraph" };
const EVERY = 6000; // milliseconds between two looks for what agents were given, which is in no event

/** action: [for one, for several]; “…” stands for the number. Without a word for it, the action is said as it is. */
const DID = {
  "entry.put": ["remembered", "remembered … things"],
  "entry.held": ["said something that waits for you", "said … things that wait for you"],
  "entry.merged": ["said again", "said … known things again"],
  "entry.updated": ["changed", "changed … memories"],
  "entry.forgotten": ["forgot", "forgot … memories"],
  "entry.restored": ["brought back", "brought back … memories"],
  "entry.accepted": ["accepted", "accepted … memories"],
  "entry.undone": ["undid a change of", "undid changes of … memories"],
  "entry.discarded": ["said something that was not worth keeping", "said … things that were not worth keeping"],
  "entry.refused": ["was not allowed to write", "was not allowed to write … times"],
  "entry.archived": ["archived", "archived … memories"],
  "entry.promoted": ["moved up", "moved … memories up"],
  "entry.consolidated": ["brought together", "brought … memories together"],
  "entry.invalidated": ["ended", "ended … memories"],
  "entry.dropped": ["let go of", "let go of … memories"],
  "citation.made": ["pinned what it cites:", "pinned citations of … memories"],
  "citation.checked": ["checked what it cites:", "checked … citations"],
  "named.edited": ["edited the page", "edited … pages"],
  "named.updated": ["edited the page", "edited … pages"],
  "transcript.kept": ["kept a session", "kept … sessions"],
  "transcript.observed": ["looked through a session", "looked through … sessions"],
  "transcript.imported": ["imported a session", "imported … sessions"],
  "conversation.started": ["started a conversation", "started … conversations"],
  "conversation.ended": ["ended a conversation", "ended … conversations"],
  "note.written": ["wrote a note", "wrote … notes"],
  "note.cleared": ["cleared a note", "cleared … notes"],
  "channel.created": ["made a channel", "made … channels"],
  "rivals.judged": ["decided between two memories", "decided between memories … times"],
  "scrub.executed": ["removed memory for good", "removed memory for good … times"],
  "erasure.proved": ["proved an erasure", "proved … erasures"],
  "grant.created": ["gave an agent access", "gave … agents access"],
  "grant.revoked": ["took an agent's access away", "took access away … times"],
  "log.bookmarked": ["set a bookmark", "set … bookmarks"],
};

export async function show(page) {
  const [seen, tokens] = await Promise.all([page.api.get("activity", { limit: 60 }), page.api.get("tokens", { since: "30d" })]);
  const list = h("ol", { class: "happened" });
  const state = h("span", { class: "badge", role: "status" }, "connecting …");
  const world = { page, list, state, known: new Set() };
  draw(world, seen.happened, true);
  follow(world);
  return [
    head("Activity", "What you and your agents did, newest first: what was written, and what was given to whom.", state),
    h(
      "div",
      { class: "two" },
      h("section", { class: "panel", "aria-label": "What happened" }, seen.happened.length ? list : [list, quiet()]),
      h("div", { class: "stack wide" }, cost(page, tokens), agents(tokens)),
    ),
  ];
}

const quiet = () => empty("Quiet so far", "As soon as an agent reads or writes, you see it here.");

function draw(world, happened, first = false) {
  const key = (one) => `${one.at} ${one.who} ${one.did}`;
  put(
    world.list,
    happened.map((one) => {
      const fresh = !first && !world.known.has(key(one));
      return h(
        "li",
        { class: fresh ? "fresh" : null },
        h("i", { class: `act on-${kindOf(one.did)}`, "aria-hidden": "true" }),
        h("div", null, sentence(world.page, one), details(world.page, one)),
        h("span", { class: "when" }, time(one.at)),
      );
    }),
  );
  for (const one of happened) world.known.add(key(one));
}

const kindOf = (did) =>
  did === "given" ? "read" : /forgotten|dropped|discarded|refused|revoked|scrub|erasure|invalidated/.test(did) ? "away" : /held/.test(did) ? "wait" : "write";

const who = (one) => (one.yours ? "You" : one.who === "lukasa" ? "Lukasa" : one.who === "observer" ? "The observer" : one.who);

function sentence(page, one) {
  const name = h("b", null, who(one));
  const where = SURFACES[one.surface] ? h("span", { class: "quiet" }, ` ${SURFACES[one.surface]}`) : null;
  if (one.did === "given")
    return h("p", null, name, where, " asked and got ", h("b", null, one.memories ? plural(one.memories, "memory") : "the pages"), h("span", { class: "quiet" }, `, ${plural(one.tokens, "token")}`));
  const [single, several] = DID[one.did] ?? [one.did.replace(".", " "), `${one.did.replace(".", " ")}, … times`];
  return h("p", null, name, where, " ", one.times === 1 ? single : several.replace("…", number(one.times, 0)));
}

function details(page, one) {
  const told = one.about.filter((thing) => thing.text || (thing.kind === "named" && thing.id)).filter((thing) => thing.kind !== "note");
  if (!told.length) return null;
  const count = one.did === "given" ? one.memories : one.times;
  return h(
    "ul",
    { class: "things" },
    told.map((thing) => h("li", null, link(page, thing))),
    count > told.length && told.length > 1 ? h("li", { class: "quiet" }, `and ${number(count - told.length, 0)} more`) : null,
  );
}

function link(page, thing) {
  const to = { entry: ["entry", thing.id], transcript: ["conversations", "session", thing.id], conversation: ["conversations", thing.text], named: ["pages", thing.id] }[thing.kind];
  const text = { conversation: "the conversation", named: thing.id }[thing.kind] ?? thing.text;
  return to ? h("a", { href: page.link(...to) }, text) : text;
}

// What it costs

function cost(page, tokens) {
  const days = lastDays(30).map((day) => [day, tokens.by_day[day] ?? 0]);
  const today = days.at(-1)[1];
  return panel(
    "Tokens to agents",
    { more: h("a", { href: page.link("telemetry") }, "all numbers") },
    h("p", null, h("span", { class: "big" }, number(today, 0)), " today, ", h("b", null, number(tokens.tokens, 0)), ` in 30 days, for ${plural(tokens.texts, "answer")}.`),
    spark(
      days.map(([, count]) => count),
      `Tokens by day, the last 30 days: ${number(tokens.tokens, 0)} in all, at most ${number(Math.max(...days.map(([, count]) => count)), 0)} on one day`,
    ),
    h("div", { class: "row between small quiet" }, h("span", null, "30 days ago"), h("span", null, "today")),
  );
}

const lastDays = (count) => Array.from({ length: count }, (_, n) => new Date(Date.now() - (count - 1 - n) * 86400000).toISOString().slice(0, 10));

function agents(tokens) {
  const rows = Object.entries(tokens.by_agent);
  if (!rows.length) return null;
  return panel("By agent, 30 days", {}, table(["Agent", "Tokens"], rows.map(([name, count]) => [name, number(count, 0)]), { numeric: [1], name: "Tokens by agent" }));
}

// Live: the stream says that something was written; what was given is in no event, so look now and then

function follow(world) {
  const { page, state } = world;
  const source = new EventSource(`${page.api.base}events/stream`);
  let timer = 0;
  let soon = 0;
  const say = (text, tone) => {
    put(state, text);
    state.className = `badge ${tone}`;
  };
  const look = async () => {
    clearTimeout(timer);
    clearTimeout(soon);
    soon = 0;
    try {
      if (!document.hidden) draw(world, (await page.api.get("activity", { limit: 60 })).happened);
    } catch {
      say("not live", "warn");
    }
    timer = setTimeout(look, EVERY);
  };
  source.onopen = () => say("live", "good");
  source.onerror = () => say(source.readyState === EventSource.CLOSED ? "not live" : "connecting …", "warn");
  source.onmessage = () => (soon ||= setTimeout(look, 300));
  timer = setTimeout(look, EVERY);
  page.leaving(() => {
    source.close();
    clearTimeout(timer);
    clearTimeout(soon);
  });
}
