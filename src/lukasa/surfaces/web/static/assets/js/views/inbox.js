// The review inbox: held entries, proposals and rivals, each with its evidence. The keyboard alone is enough.
import { h, put } from "../dom.js";
import { doubt, look, meta, quotes } from "../entries.js";
import { ask, badge, doing, empty, field, head, number, toast, undoable } from "../parts.js";
import { DECIDED, side, takeBack } from "../rivals.js";
import { card as submitted } from "../submissions.js";

export async function show(page) {
  const inbox = await page.api.get("review");
  const items = [
    ...inbox.entries.map((one) => ({ ...one, id: one.entry.id, text: one.entry.content })),
    ...inbox.proposals.map((one) => ({ ...one, id: one.amendment.id, text: one.amendment.change })),
    ...inbox.submissions.map((one) => ({ ...one, id: one.submission.id, text: one.submission.change.text })),
    ...inbox.doubtful.map((one) => ({ ...one, id: one.entry.id, text: one.entry.content, doubtful: true })),
    ...inbox.rivals.map((one) => ({ ...one, id: one.later.id, text: one.later.content })),
  ];
  const said = h("div");
  const list = h("ol", { class: "list" });
  const state = { page, items, list, said };
  draw(state);
  const keys = (event) => key(event, state);
  document.addEventListener("keydown", keys);
  page.leaving(() => document.removeEventListener("keydown", keys));
  return [
    head(
      "Waiting for you",
      "Agents do not get held entries and proposals until you approve them, and nothing goes from memory into a document without you. Of two entries about one thing they get the later one first. Nothing you decide is final: you can bring everything back.",
    ),
    h(
      "div",
      { class: "stack" },
      h(
        "p",
        { class: "small quiet" },
        [
          ["j", "next"],
          ["k", "previous"],
          ["a", "approve"],
          ["e", "edit"],
          ["r", "reject"],
          ["o", "keep the old"],
          ["n", "use the new"],
          ["b", "both are true"],
        ].map(([name, what]) => [h("kbd", null, name), ` ${what}  `]),
      ),
      said,
      list,
    ),
  ];
}

function draw({ page, items, list, said }) {
  dispatchEvent(new CustomEvent("counts", { detail: { waiting: items.length } }));
  put(
    list,
    items.length
      ? items.map((item) => card({ page, items, list, said }, item))
      : h(
          "li",
          null,
          empty(
            "Nothing waits for you",
            "Entries that the gate is unsure of, proposed changes of the curated page, pairs of entries that may contradict each other, entries that rest on something which changed or was withdrawn, and changes submitted to documents appear here.",
          ),
        ),
  );
}

// A held entry and one that it contradicts, as a pair to decide about: the earlier one, and the later one.
function contested(item) {
  const pair = [item.entry, item.against[0]];
  const [earlier, later] = pair.sort((a, b) => a.confirmed_at.localeCompare(b.confirmed_at));
  return { ...item, earlier, later, other: item.against[0].id };
}

// Two entries that give one thing two values. One of them may be held: then its approval is the same decision.
function rivals(state, item) {
  const { page } = state;
  const other = item.other ?? item.earlier.id;
  const settle = (keep) => doing(state.said, () => decided(state, item, "settle", { other, keep }));
  return h(
    "li",
    { class: "card", tabindex: "-1", "data-id": item.id },
    h("div", { class: "row between" }, h("h2", null, "Do both hold?"), badge("two values", "warn")),
    h("div", { class: "versus" }, side(page, item.earlier, "old"), side(page, item.later, "new")),
    h("p", { class: "small" }, h("span", { class: "strong" }, "Why you are asked: "), item.why || "no reason given"),
    quotes(item.quotes),
    h(
      "div",
      { class: "row" },
      h("button", { "data-do": "o", onclick: settle("old") }, "Keep the old"),
      h("button", { class: "first", "data-do": "n", onclick: settle("new") }, "Use the new"),
      h("button", { "data-do": "b", onclick: settle("both") }, "Both are true"),
      item.entry ? h("button", { "data-do": "e", onclick: () => edit(state, item) }, "Edit and approve") : null,
    ),
  );
}

function card(state, item) {
  if (item.submission)
    return submitted(state.page, item, state.said, (verb, body) => decided(state, item, verb, body));
  if (item.later) return rivals(state, item);
  if (item.against?.length) return rivals(state, contested(item));
  const { page } = state;
  const decide = (verb, body) => doing(state.said, () => decided(state, item, verb, body));
  const node = h(
    "li",
    { class: item.entry ? look(item.entry) : "card", tabindex: "-1", "data-id": item.id },
    h(
      "div",
      { class: "row between" },
      h("h2", { class: "content" }, item.text),
      badge(
        item.doubtful ? "does it still hold?" : item.entry ? "held entry" : "proposal",
        item.entry ? "warn" : "accent",
      ),
    ),
    h("p", { class: "small" }, h("span", { class: "strong" }, "Why it waits: "), item.why || "no reason given"),
    quotes(item.quotes),
    item.entry
      ? [meta(item.entry), h("a", { class: "small", href: page.link("entry", item.id) }, "Open the entry")]
      : h(
          "div",
          { class: "meta" },
          h("span", null, `for the section “${item.amendment.section}”`),
          h("span", null, `confidence ${number(item.amendment.confidence, 2)}`),
          item.sources.map((entry) =>
            h("span", null, doubt(entry), " ", h("a", { href: page.link("entry", entry.id) }, entry.content.slice(0, 60))),
          ),
        ),
    h(
      "div",
      { class: "row" },
      h(
        "button",
        { class: "first", "data-do": "a", onclick: decide("approve", {}) },
        item.doubtful ? "It still holds" : "Approve",
      ),
      h("button", { "data-do": "e", onclick: () => edit(state, item) }, "Edit and approve"),
      h("button", { class: "danger", "data-do": "r", onclick: decide("reject", {}) }, item.doubtful ? "Forget it" : "Reject"),
    ),
  );
  return node;
}

/** Show the inbox anew, after something was taken back. */
const again = (state) => state.page.go("inbox");

async function decided(state, item, verb, body) {
  const made = await state.page.api.post(`review/${item.id}/${verb}`, body);
  const place = state.items.findIndex((one) => one.id === item.id);
  state.items.splice(place, 1);
  draw(state);
  (state.list.children[Math.min(place, state.items.length - 1)] ?? state.list).focus?.();
  if (verb === "settle")
    return undoable(DECIDED[body.keep], () => takeBack(state.page, item.earlier, item.later, body.keep).then(() => again(state)));
  if (made.beside?.length) {
    const show = { label: "Decide", run: () => state.page.go("inbox") };
    return toast("Approved. It may contradict another entry: both stay until you decide.", show);
  }
  if (made.submission?.accepted) return toast(`Accepted: document ${made.submission.document}, version ${made.submission.accepted}.`);
  const told = { approve: "Approved.", edit: "Approved in your words.", reject: "Rejected." }[verb];
  if (!item.entry || item.doubtful) return toast(told);
  undoable(told, () => state.page.api.post(`entries/${item.id}/undo`, {}).then(() => again(state)));
}

function edit(state, item) {
  return ask("Approve it in your own words", (close) => {
    const text = h("textarea", { name: "text", required: true, value: item.text });
    const said = h("div");
    return h(
      "form",
      {
        onsubmit: doing(said, async () => {
          await decided(state, item, "edit", { text: text.value });
          close();
        }),
      },
      field("Text", text),
      said,
      h(
        "div",
        { class: "row end" },
        h("button", { type: "button", onclick: () => close() }, "Cancel"),
        h("button", { class: "first" }, "Approve this"),
      ),
    );
  });
}

function key(event, { list }) {
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    document.querySelector("dialog[open]") ||
    /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)
  )
    return;
  const cards = [...list.querySelectorAll(".card")];
  const at = cards.findIndex((one) => one.contains(document.activeElement));
  if (event.key === "j" || event.key === "k") {
    const next = cards[Math.max(0, Math.min(cards.length - 1, event.key === "j" ? at + 1 : at - 1))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  } else if ("aeronb".includes(event.key) && at >= 0) cards[at].querySelector(`[data-do=${event.key}]`)?.click();
  else return;
  event.preventDefault();
}
