// Sessions: what was said, and what was learned of it. And the conversations that agents lead, with their notes.
import { h } from "../dom.js";
import { faces } from "../faces.js";
import { badge, confirm, copyId, doing, empty, facts, head, later, panel, plural, problem, time, toast } from "../parts.js";

const PAGE = 60;
const MESSAGES = 200;
const AGENTS = { claude: "Claude Code", "claude-code": "Claude Code", codex: "Codex", chatgpt: "ChatGPT", cursor: "Cursor", gemini: "Gemini CLI", messages: "a file of messages", log: "a log", plain: "a text" };
const agent = (format) => AGENTS[format] ?? format;

export async function show(page) {
  const [first, id] = page.args;
  if (first === "session") return session(page, id ?? "");
  return first ? conversation(page, first) : all(page);
}

const shorter = (text, most) => {
  const line = (text || "").trim().split("\n")[0];
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()} …` : line;
};
const day = (value) => new Date(value).toLocaleDateString(undefined, { day: "numeric", month: "long", year: "numeric" });
const name = (one) => shorter(one.title, 110) || `A session of ${day(one.started_at ?? one.created_at)}`;

// The list

async function all(page) {
  const [{ transcripts, next }, { conversations }, { channels }] = await Promise.all([
    page.api.get("transcripts", { limit: PAGE }),
    page.api.get("conversations"),
    page.api.get("channels"),
  ]);
  const channel = new Map(channels.map((one) => [one.id, one.name]));
  const rows = h("ul", { class: "sessions" }, transcripts.map((one) => row(page, one)));
  const where = h("div");
  let after = next;
  const more = h(
    "button",
    {
      onclick: doing(where, async () => {
        const found = await page.api.get("transcripts", { limit: PAGE, after });
        for (const one of found.transcripts) rows.append(row(page, one));
        after = found.next;
        more.hidden = !after;
      }),
    },
    "Older sessions",
  );
  return [
    head("Sessions", "What you and your agents said, kept word for word, and what was learned of it."),
    h(
      "div",
      { class: "stack wide" },
      transcripts.length
        ? h("section", { class: "panel" }, rows, next ? more : null, where)
        : empty(
            "No session yet",
            "Connect an agent, and each of its sessions is kept here with what was learned of it. You can also hand in a file: lukasa observe FILE.",
            h("a", { class: "button first", href: page.link("access") }, "Connect an agent"),
          ),
      panel(
        "Conversations with notes",
        {},
        conversations.length
          ? h(
              "ul",
              { class: "sessions" },
              conversations.map((one) =>
                h(
                  "li",
                  null,
                  h("a", { class: "words", href: page.link("conversations", one.ref_code) }, `In ${channel.get(one.channel) ?? "a channel"}, ${day(one.started_at)}`),
                  h("span", { class: "small quiet" }, badge(one.status === "active" ? "open" : one.status, one.status === "active" ? "good" : ""), " begun ", time(one.started_at)),
                ),
              ),
            )
          : h("p", { class: "quiet" }, "None. An agent that starts a conversation keeps notes in it while it works."),
      ),
    ),
  ];
}

function row(page, one) {
  return h(
    "li",
    null,
    h("a", { class: "words", href: page.link("conversations", "session", one.id) }, name(one)),
    h("span", { class: "small quiet" }, `${agent(one.format)} · ${plural(one.kept, "message")} · `, time(one.started_at ?? one.created_at)),
    h("span", { class: "outcomes" }, tally(one)),
  );
}

function tally(one) {
  const { kept = 0, held = 0, retired = 0 } = one.learned ?? {};
  if (one.progress === "failed") return badge("could not be read", "bad");
  return [
    kept ? h("span", { class: "became kept" }, `${kept} kept`) : null,
    held ? h("span", { class: "became held" }, `${held} held`) : null,
    retired ? h("span", { class: "became retired" }, `${retired} retired`) : null,
    one.progress === "pending" ? h("span", { class: "quiet small" }, "not looked at yet") : null,
    one.progress === "observed" && !kept && !held && !retired ? h("span", { class: "quiet small" }, "nothing to keep") : null,
  ];
}

// One session

const BECAME = { kept: "kept", held: "held until you decide", merged: "known already, confirmed", retired: "retired since", discarded: "discarded" };

async function session(page, id) {
  const [{ transcript, said, next }, { sentences }] = await Promise.all([
    page.api.get(`transcripts/${encodeURIComponent(id)}`, { limit: MESSAGES }),
    page.api.get(`transcripts/${encodeURIComponent(id)}/learned`),
  ]);
  const learned = Map.groupBy(sentences, (one) => one.message);
  const counts = Map.groupBy(sentences, (one) => one.became);
  const talk = h("ol", { class: "talk" });
  const only = h("input", { type: "checkbox", onchange: () => talk.classList.toggle("only", only.checked) });
  let [after, previous] = [next, 0];
  const add = (messages) => {
    for (const one of messages) talk.append(message(page, one, learned.get(one.id) ?? []));
    previous += messages.length;
  };
  add(said);
  const where = h("div");
  const more = h(
    "button",
    {
      onclick: doing(where, async () => {
        const found = await page.api.get(`transcripts/${encodeURIComponent(id)}`, { limit: MESSAGES, after });
        add(found.said);
        after = found.next;
        more.hidden = !after;
      }),
    },
    "More messages",
  );
  return [
    h("p", { class: "crumb" }, h("a", { href: page.link("conversations") }, "Sessions")),
    head(
      shorter(transcript.title, 80) || "A session",
      [`${agent(transcript.format)}, ${day(transcript.started_at ?? transcript.created_at)}: ${plural(transcript.kept, "message")}. `, Object.keys(BECAME).filter((one) => counts.has(one)).map((one) => [h("span", { class: `became ${one}` }, `${counts.get(one).length} ${one}`), " "])],
      sentences.length ? h("a", { class: "button", href: page.link("browse", new URLSearchParams({ session: id, all: "1" })) }, "As a list") : null,
      copyId(id),
    ),
    h(
      "div",
      { class: "stack" },
      transcript.progress === "pending" ? h("p", { class: "notice warn" }, transcript.detail || "Nobody has looked at all of it yet; the worker does.") : null,
      transcript.progress === "failed" ? h("p", { class: "notice bad" }, transcript.detail) : null,
      sentences.length ? h("label", { class: "check" }, only, "Only messages that taught something") : h("p", { class: "quiet" }, "Nothing in it was worth keeping, or nobody has looked yet."),
      talk,
      next ? more : null,
      where,
    ),
  ];
}

function message(page, one, sentences) {
  const who = { user: "you", assistant: "the agent", tool: "a tool", system: "the system" }[one.role] ?? one.role;
  return h(
    "li",
    { class: `said-by ${one.role}${sentences.length ? " taught" : ""}` },
    h("div", { class: "who" }, who, one.at ? [" · ", time(one.at)] : null),
    h("div", { class: "content" }, marked(page, one.text, sentences)),
    sentences.length ? h("ul", { class: "lessons" }, sentences.map((each) => lesson(page, each))) : null,
  );
}

/** Return a text with the learned sentences marked. Places count characters as Python does: by code point. */
function marked(page, text, sentences) {
  const letters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const one of [...sentences].sort((a, b) => a.start - b.start)) {
    if (one.start < at || one.end > letters.length) continue;
    parts.push(letters.slice(at, one.start).join(""));
    const words = letters.slice(one.start, one.end).join("");
    parts.push(h("mark", { class: one.became, title: `${BECAME[one.became]}${one.reason ? `: ${one.reason}` : ""}` }, words));
    at = one.end;
  }
  return [...parts, letters.slice(at).join("")];
}

function lesson(page, one) {
  return h(
    "li",
    null,
    h("span", { class: `became ${one.became}` }, one.state && one.became === "retired" ? one.state : one.became),
    " ",
    one.entry ? h("a", { href: page.link("entry", one.entry) }, shorter(one.content, 160)) : null,
    one.reason ? h("span", { class: "quiet" }, one.entry ? ` · ${one.reason}` : one.reason) : null,
    one.became === "held" ? [" · ", h("a", { href: page.link("inbox") }, "decide")] : null,
  );
}

// One conversation

async function conversation(page, ref) {
  const [{ conversations }, { channels }] = await Promise.all([page.api.get("conversations", { archived: true }), page.api.get("channels")]);
  const talk = conversations.find((one) => one.ref_code === ref || one.id === ref);
  if (!talk) return [head("Sessions"), problem({ message: `There is no conversation ${ref} in this workspace.` })];
  const channel = channels.find((one) => one.id === talk.channel)?.name ?? "a channel";
  const said = h("div");
  return [
    h("p", { class: "crumb" }, h("a", { href: page.link("conversations") }, "Sessions")),
    head(
      `In ${channel}, ${day(talk.started_at)}`,
      [talk.status === "active" ? "A conversation that goes on. Begun " : `A conversation that is ${talk.status}. Begun `, time(talk.started_at), talk.ended_at ? [", ended ", time(talk.ended_at)] : null, "."],
      talk.status === "active" ? h("button", { onclick: doing(said, () => end(page, talk)) }, "End") : null,
      talk.status === "archived" ? null : h("button", { onclick: doing(said, () => archive(page, talk)) }, "Archive"),
      copyId(talk.id),
    ),
    said,
    h(
      "div",
      { class: "two" },
      panel(
        "Notes",
        {},
        later(
          () => page.api.get(`conversations/${encodeURIComponent(talk.id)}/notes`),
          ({ notes }) =>
            notes.length
              ? notes.map((note) =>
                  h(
                    "div",
                    { class: "card" },
                    h("div", { class: "row between" }, h("h3", { class: "wrap" }, note.key), h("span", { class: "small quiet" }, time(note.updated_at))),
                    noted(note.value),
                  ),
                )
              : empty("No notes", "An agent writes notes while it works. They are not memory, and end with the conversation."),
        ),
      ),
      panel(
        "Remembered here alone",
        {},
        later(
          () => page.api.post("table", { conversation: talk.id, limit: 100 }, { repeatable: false }),
          ({ rows }) =>
            rows.length ? faces(page, rows.map((one) => one.entry)) : h("p", { class: "quiet" }, "No entry belongs to this conversation alone."),
        ),
      ),
    ),
  ];
}

async function archive(page, talk) {
  if (!(await confirm("Archive this conversation?", "You cannot resume an archived conversation.", "Archive it", "danger"))) return;
  await page.api.post(`conversations/${encodeURIComponent(talk.id)}/archive`);
  toast("Archived.");
  page.go("conversations", talk.ref_code);
}

async function end(page, talk) {
  const sure = await confirm(
    "End this conversation?",
    "Its notes and what it alone remembered go, except what the spec carries on. A summary stays in its topic.",
    "End it",
    "danger",
  );
  if (!sure) return;
  const ended = await page.api.post(`conversations/${encodeURIComponent(talk.id)}/end`);
  toast(`Ended: ${ended.dropped} let go, ${ended.carried} carried on, ${ended.archived} archived.`);
  page.go("conversations", talk.ref_code);
}

/** Show the value of a note: a text as it is, names with plain values as a list, anything else as JSON. */
function noted(value) {
  if (typeof value === "string" || typeof value === "number") return h("p", { class: "content" }, String(value));
  const flat = value && typeof value === "object" && !Array.isArray(value) && Object.values(value).every((one) => one === null || typeof one !== "object");
  return flat ? facts(Object.fromEntries(Object.entries(value).map(([key, one]) => [key, String(one)]))) : h("pre", null, JSON.stringify(value, null, 2));
}
