// Two statements that give one thing two values, and the decision between them, with Undo.
import { h } from "./dom.js";
import { bead, sayer } from "./faces.js";
import { doubt, look } from "./entries.js";
import { badge, doing, time, undoable } from "./parts.js";

export const DECIDED = { old: "The old one holds.", new: "The new one holds.", both: "Both are true." };

/** Return one of two statements: its words, and who said it when. */
export const side = (page, entry, name) =>
  h(
    "div",
    { class: `${look(entry, "side")} ${name}` },
    h("a", { class: "words", href: page.link("entry", entry.id) }, entry.content),
    h(
      "p",
      { class: "said" },
      bead(entry),
      " ",
      sayer(entry),
      " · ",
      time(entry.confirmed_at),
      entry.state === "held" ? [" ", badge("held")] : null,
      entry.unverified ? [" ", doubt(entry)] : null,
    ),
  );

/** Take a decision about a pair back: it waits again. */
export async function takeBack(page, earlier, later, keep) {
  const undo = (entry) => page.api.post(`entries/${entry.id}/undo`, {});
  if (keep === "both") {
    await page.api.post(`review/${later.id}/settle`, { other: earlier.id, keep: "open" });
    for (const one of [earlier, later]) if (one.state === "held") await undo(one);
    return;
  }
  const [stays, gone] = keep === "old" ? [earlier, later] : [later, earlier];
  await undo(gone);
  if (stays.state === "held") await undo(stays);
}

/** Decide about a pair, say so, and offer to take it back. `after` hears that something changed. */
async function settle(page, earlier, later, keep, after) {
  await page.api.post(`review/${later.id}/settle`, { other: earlier.id, keep });
  after();
  undoable(DECIDED[keep], () => takeBack(page, earlier, later, keep).then(after));
}

/** Return the card of a pair, to decide about on the spot. */
export function pairCard(page, pair, after) {
  const said = h("div");
  const choose = (keep, text, name) =>
    h("button", { class: name, onclick: doing(said, () => settle(page, pair.earlier, pair.later, keep, after)) }, text);
  return h(
    "div",
    { class: "stack tight pair-card" },
    h("p", null, "Two statements differ. Which one holds?"),
    h("div", { class: "versus" }, side(page, pair.earlier, "old"), side(page, pair.later, "new")),
    said,
    h("div", { class: "row" }, choose("old", "Keep the old"), choose("new", "Use the new", "first"), choose("both", "Both are true")),
  );
}
