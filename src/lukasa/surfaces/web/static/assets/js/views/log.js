// The event log: every change of memory, newest first, updated live.
import { h, put } from "../dom.js";
import { empty, field, head, table, time } from "../parts.js";

const PAGE = 200;

export async function show(page) {
  const action = page.query.get("action") ?? "";
  const events = await latest(page, action);
  const rows = h("div");
  const state = h("span", { class: "badge", role: "status" }, "connecting …");
  const draw = () =>
    put(
      rows,
      events.length
        ? table(
            ["#", "What", "About", "Who", "When", ""],
            events.map((one) => row(page, one)),
            { name: "Events" },
          )
        : empty("No events", action ? `There is no event “${action}”.` : "Every change of memory is recorded here."),
    );
  draw();
  follow(page, events, action, draw, state);
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
          role: "search",
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

function row(page, event) {
  const about =
    event.action.startsWith("entry.") && event.subject
      ? h("a", { href: page.link("entry", event.subject) }, event.subject.slice(0, 13), "…")
      : h("span", { class: "wrap" }, event.subject.slice(0, 60));
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
    ),
  ];
}
