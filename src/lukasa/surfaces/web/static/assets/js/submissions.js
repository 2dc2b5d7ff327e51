// Submissions: changes of documents that rest on memories, as cards of the inbox and as what an entry became part of.
import { shown } from "./diff.js";
import { h } from "./dom.js";
import { doubt, quotes } from "./entries.js";
import { ask, badge, doing, field, later, time, toast } from "./parts.js";

const WHERE = { whole: "", end: "at the end", under: "under the heading", replace: "in place of" };

/** A card for a submission. `decide` sends a decision to the server, and takes the card away. */
export function card(page, item, said, decide) {
  const { submission, document: target } = item;
  const { change } = submission;
  const moved = item.since.length > 0;
  const onto = target ? { onto: target.version } : {};
  const boxes = item.memories.map((entry) => memory(page, item, entry));
  const body = () => ({ retire: boxes.filter((one) => one.box?.checked).map((one) => one.box.value) });
  const where = submission.base ? [WHERE[change.how], change.place && `“${change.place.slice(0, 120)}”`].filter(Boolean) : [];
  return h(
    "li",
    { class: "card", tabindex: "-1", "data-id": submission.id },
    h(
      "div",
      { class: "row between" },
      h("h2", null, submission.base ? "Change of " : "New document ", target?.title ?? (submission.title || submission.document)),
      badge("for the corpus", "accent"),
    ),
    h(
      "p",
      { class: "meta" },
      target?.title === submission.document ? null : h("span", null, `document ${submission.document}`),
      target
        ? h("span", null, `version ${target.version} · ${target.origin} · ${target.lifecycle} · weight ${target.weight} · ${target.standing}`)
        : null,
      where.length ? h("span", null, where.join(" ")) : null,
      h("span", null, `by ${submission.origin.principal}, `, time(submission.created_at)),
    ),
    h("p", { class: "small" }, h("span", { class: "strong" }, "Why it waits: "), item.why),
    Object.keys(submission.keys).length
      ? warning(`It was made in ${pairs(submission.keys)}. Everybody in this workspace will read it.`)
      : null,
    item.source ? warning(`It was read from ${item.source}. The next version of that replaces this text, so change it there too.`) : null,
    moved
      ? h("details", { open: true }, h("summary", null, "What has changed in the document since"), shown(item.since))
      : null,
    item.trouble ? warning(`${item.trouble[0].toUpperCase()}${item.trouble.slice(1)}.`) : null,
    item.changes.length
      ? h("section", { class: "stack tight", "aria-label": "The change" }, h("h3", null, "The change"), shown(item.changes))
      : h("section", { class: "stack tight" }, h("h3", null, "The text"), h("p", { class: "content" }, change.text)),
    h(
      "section",
      { class: "stack tight" },
      h("h3", null, "It rests on"),
      boxes.map((one) => one.node),
      gone(item),
    ),
    quotes(item.quotes),
    h(
      "div",
      { class: "row" },
      h(
        "button",
        { class: "first", "data-do": "a", disabled: moved || item.trouble !== "", onclick: doing(said, () => decide("approve", body())) },
        "Accept",
      ),
      h("button", { "data-do": "e", onclick: () => edit(item, (more) => decide("edit", { ...body(), ...onto, ...more })) }, "Edit and accept"),
      h("button", { class: "danger", "data-do": "r", onclick: doing(said, () => decide("reject", {})) }, "Reject"),
    ),
  );
}

// A memory, with the choice to retire it: made for those that the submission calls unnecessary from now on.
function memory(page, item, entry) {
  const left = item.kept.find((one) => one.id === entry.id);
  const link = h("a", { href: page.link("entry", entry.id) }, entry.content.slice(0, 160));
  if (left) return { node: h("p", { class: "small" }, doubt(entry), link, " ", badge(left.reason, "warn")) };
  const box = h("input", { type: "checkbox", name: "retire", value: entry.id, checked: item.retires.includes(entry.id) });
  const label = h("label", { class: "check" }, box, "retire it, since the document says it");
  return { box, node: h("div", { class: "stack tight small" }, h("p", null, doubt(entry), link), label) };
}

const gone = (item) =>
  item.kept
    .filter((one) => !item.memories.some((entry) => entry.id === one.id))
    .map((one) => h("p", { class: "small" }, h("code", null, one.id), ` ${one.reason}`));

const warning = (text) => h("p", { class: "notice warn small" }, text);
const pairs = (keys) => Object.entries(keys).map(([key, value]) => `${key}=${value}`).join(", ");

function edit(item, send) {
  const { change } = item.submission;
  return ask("Accept it in your own words", (close) => {
    const text = h("textarea", { name: "text", required: true, rows: 12, value: change.text });
    const whole = h("input", { type: "checkbox", name: "whole", checked: change.how === "whole", disabled: change.how === "whole" });
    const said = h("div");
    return h(
      "form",
      {
        onsubmit: doing(said, async () => {
          await send({ text: text.value, whole: whole.checked });
          close();
        }),
      },
      field("Text", text, item.document ? `It goes into version ${item.document.version} of the document.` : null),
      h("label", { class: "check" }, whole, "This is the whole document"),
      said,
      h(
        "div",
        { class: "row end" },
        h("button", { type: "button", onclick: () => close() }, "Cancel"),
        h("button", { class: "first" }, "Accept this"),
      ),
    );
  });
}

/** What became of the submissions to a document, or of those that rest on an entry. */
export function panel(page, query, title) {
  const shown = later(
    () => page.api.get("corpus/submissions", query),
    ({ submissions }) =>
      submissions.length
        ? h(
            "section",
            { class: "panel" },
            h("h2", null, title),
            submissions.map((one) => past(page, one, shown)),
          )
        : null,
  );
  return shown;
}

function past(page, one, shown) {
  const said = h("div");
  const undo = async () => {
    await page.api.post(`review/${one.id}/undo`, {});
    toast(`Document ${one.document} has its text of before, and the submission waits again.`);
    shown.again();
  };
  return h(
    "div",
    { class: "stack tight small" },
    h("p", { class: "row" }, badge(one.state), one.accepted ? `${one.document}, version ${one.accepted}` : one.document),
    h("p", { class: "content" }, one.change.text || "Its words were removed with a memory on which it rested."),
    h("p", { class: "meta" }, h("span", null, `by ${one.origin.principal}, `, time(one.created_at)), one.decided_by ? h("span", null, `decided by ${one.decided_by}: ${one.reason}`) : null),
    said,
    one.accepted ? h("div", null, h("button", { class: "small", onclick: doing(said, undo) }, "Take it back")) : null,
  );
}
