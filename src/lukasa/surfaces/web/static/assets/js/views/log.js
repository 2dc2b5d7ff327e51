// The event log: every change of memory, newest first, updated live.
import { h, put } from "../dom.js";
import { copyId, empty, field, head, table, time } from "../parts.js";

const PAGE = 200;

export async function show(page) {
  const action = page.query.get("action") ?? "";
  const events = await latest(page, action);
  const rows = h("div");
  const texts = new Map(); // of the entries that events are about
  const state = h("span", { class: "badge", role: "status" }, "connecting …");
  const draw = () =>
    put(
      rows,
      events.length
        ? table(
            ["#", "What", "About", "Who", "When", "More"],
            events.map((one) => row(page, one, texts)),
            { name: "Events" },
          )
        : empty("No events", action ? `There is no event “${action}”.` : "Every change of memory is recorded here."),
    );
  const told = async () => {
    draw();
    const unknown = [...new Set(events.filter(isEntry).map((one) => one.subject))].filter((id) => !texts.has(id)).slice(0, 500);
    if (!unknown.length) return;
    for (const id of unknown) texts.set(id, "");
    const { rows: found } = await page.api.post("table", { ids: unknown, everything: true, limit: 500 }, { repeatable: false });
    for (const { entry } of found) texts.set(entry.id, entry.content);
    draw();
  };
  await told();
  follow(page, events, action, () => told().catch(() => {}), state);
  const input = h("input", { name: "action", value: action, placeholder: "entry.put" });
  return [
    head("Event log", "Every change of memory, append-only. Each event holds the digest of the one before it.", state),
    h(
      "div",
      { class: "stack" },
      h(
        "form",
        {
          class: "row low",
          onsubmit: (event) => {
            event.preventDefault();
            page.go("log", new URLSearchParams(input.value ? { action: input.value } : {}));
          },
        },
        h("div", { class: "grow" }, field("Only this action", input)),
        h("button", null, "Filter"),
      ),
      rows,
    ),
  ];
}

/** Return the last page of the log. The API goes forward, so read all pages and keep the last. */
async function latest(page, action) {
  let after = 0,
    found = [];
  for (;;) {
    const { events, next } = await page.api.get("events", { after, limit: 1000, action });
    found = [...found, ...events].slice(-PAGE);
    if (!next || !events.length) return found.toReversed();
    after = next;
  }
}

function follow(page, events, action, draw, state) {
  const source = new EventSource(`${page.api.base}events/stream?after=${events[0]?.seq ?? 0}`);
  const say = (text, tone) => {
    put(state, text);
    state.className = `badge ${tone}`;
  };
  source.onopen = () => say("live", "good");
  source.onerror = () => say(source.readyState === EventSource.CLOSED ? "not live" : "connecting …", "warn");
  const take = (message) => {
    const event = JSON.parse(message.data);
    if (events.some((one) => one.seq === event.seq) || (action && event.action !== action)) return;
    events.unshift(event);
    events.length = Math.min(events.length, PAGE);
    draw();
  };
  source.onmessage = take;
  page.leaving(() => source.close());
}

const isEntry = (event) => event.action.startsWith("entry.") && event.subject;
const isId = (text) => /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(text);

/** Say what an event is about: the words of an entry; of anything else its name, or what kind of thing it is. */
function subject(page, event, texts) {
  const { subject: id, action } = event;
  if (isEntry(event)) {
    const text = texts.get(id);
    return text ? h("a", { href: page.link("entry", id) }, text.length > 90 ? `${text.slice(0, 89)}…` : text) : h("span", { class: "quiet" }, "an entry that is not here any more");
  }
  if (action.startsWith("transcript.")) return h("a", { href: page.link("conversations", "session", id) }, "a session");
  if (action.startsWith("conversation.") || action.startsWith("note.")) return h("a", { href: page.link("conversations", id.split("/")[0]) }, "a conversation");
  const named = event.detail?.name;
  return h("span", { class: "wrap" }, named || (isId(id) ? `a ${action.split(".")[0]}` : id.slice(0, 60)));
}

function row(page, event, texts) {
  const about = subject(page, event, texts);
  return [
    event.seq,
    h("span", { class: "strong" }, event.action),
    about,
    `${event.actor.principal}@${event.actor.surface}`,
    time(event.at),
    h(
      "details",
      null,
      h("summary", null, "Detail"),
      h("pre", null, JSON.stringify(event.detail, null, 2)),
      h("p", { class: "small quiet mono wrap" }, event.digest),
      isId(event.subject) ? copyId(event.subject) : null,
    ),
  ];
}
