// Conversations by channel, each with the agent's notes, read-only here.
import { h } from "../dom.js";
import { seg } from "../api.js";
import { badge, confirm, doing, empty, facts, head, later, time, toast } from "../parts.js";
import { card } from "../entries.js";

export async function show(page) {
  return page.args[0] ? one(page, page.args[0]) : all(page);
}

async function all(page) {
  const archived = page.query.get("archived") === "true";
  const [{ channels }, { conversations }] = await Promise.all([
    page.api.get("channels"),
    page.api.get("conversations", { archived: archived || null }),
  ]);
  const other = archived
    ? page.link("conversations")
    : page.link("conversations", new URLSearchParams({ archived: "true" }));
  return [
    head(
      "Conversations",
      "Sessions with agents, and the notes that agents keep while they work.",
      h("a", { class: "button", href: other }, archived ? "Hide archived" : "Show archived"),
    ),
    conversations.length
      ? null
      : empty("No conversations yet", "One begins when an agent starts a session, or with: lukasa chat"),
    h(
      "div",
      { class: "stack wide" },
      channels.map((channel) => {
        const here = conversations.filter((talk) => talk.channel === channel.id);
        return here.length || conversations.length
          ? h(
              "section",
              { class: "stack" },
              h("h2", null, channel.name),
              channel.description ? h("p", { class: "quiet" }, channel.description) : null,
              here.length
                ? h(
                    "ul",
                    { class: "list" },
                    here.map((talk) =>
                      h(
                        "li",
                        { class: "card" },
                        h("a", { class: "title", href: page.link("conversations", talk.id) }, talk.ref_code),
                        h(
                          "div",
                          { class: "meta" },
                          badge(talk.status, talk.status === "active" ? "good" : ""),
                          h("span", null, "started ", time(talk.started_at)),
                          talk.ended_at ? h("span", null, "ended ", time(talk.ended_at)) : null,
                        ),
                      ),
                    ),
                  )
                : h("p", { class: "quiet" }, "None in this channel."),
            )
          : null;
      }),
    ),
  ];
}

async function one(page, id) {
  const { conversations } = await page.api.get("conversations", { archived: true });
  const talk = conversations.find((one) => one.id === id || one.ref_code === id);
  if (!talk)
    return [
      head("Conversation"),
      empty(
        "No such conversation",
        "It may have been scrubbed.",
        h("a", { class: "button", href: page.link("conversations") }, "All conversations"),
      ),
    ];
  const said = h("div");
  const act = (verb, title, text) =>
    doing(said, async () => {
      if (!(await confirm(title, text, title.replace("?", ""), "danger"))) return;
      await page.api.post(`conversations/${seg(talk.id)}/${verb}`);
      toast("Done.");
      page.go("conversations", talk.id);
    });
  return [
    h("p", { class: "crumb" }, h("a", { href: page.link("conversations") }, "Conversations"), ` / ${talk.ref_code}`),
    head(
      talk.ref_code,
      null,
      talk.status === "active"
        ? h("button", { onclick: act("end", "End it?", "Entries and notes that belong only to this conversation are removed.") }, "End")
        : null,
      talk.status !== "archived"
        ? h(
            "button",
            { onclick: act("archive", "Archive it?", "You cannot resume an archived conversation.") },
            "Archive",
          )
        : null,
    ),
    said,
    h(
      "div",
      { class: "two" },
      h(
        "section",
        { class: "stack" },
        h("h2", null, "Notes"),
        later(
          () => page.api.get(`conversations/${seg(talk.id)}/notes`),
          ({ notes }) =>
            notes.length
              ? notes.map((note) =>
                  h(
                    "div",
                    { class: "card" },
                    h(
                      "div",
                      { class: "row between" },
                      h("h3", { class: "wrap" }, note.key),
                      h("span", { class: "small quiet" }, time(note.updated_at)),
                    ),
                    h("pre", null, typeof note.value === "string" ? note.value : JSON.stringify(note.value, null, 2)),
                  ),
                )
              : empty(
                  "No notes",
                  "An agent writes notes while it works. They are not memory, and end with the conversation.",
                ),
        ),
      ),
      h(
        "div",
        { class: "stack wide" },
        h(
          "section",
          { class: "panel" },
          h("h2", null, "About"),
          facts({
            status: badge(talk.status, talk.status === "active" ? "good" : ""),
            started: time(talk.started_at),
            ended: talk.ended_at && time(talk.ended_at),
            id: h("code", null, talk.id),
          }),
        ),
        h(
          "section",
          { class: "stack" },
          h("h2", null, "Remembered here"),
          later(
            () => page.api.get("entries", { tier: "conversation", conversation: talk.id, everything: true }),
            ({ entries }) =>
              entries.length
                ? h(
                    "ul",
                    { class: "list" },
                    entries.map((entry) => card(page, entry)),
                  )
                : h("p", { class: "quiet" }, "No entry belongs to this conversation alone."),
          ),
        ),
      ),
    ),
  ];
}
