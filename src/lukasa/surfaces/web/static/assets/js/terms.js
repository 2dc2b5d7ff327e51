// The one place that explains the words of the page.
import { h } from "./dom.js";
import { ask } from "./parts.js";

export const TERMS = {
  Memory: "One statement that Lukasa keeps, word for word, with who said it and when. The log calls it an entry.",
  Tier: "Where a memory holds: everywhere (account), in this project (workspace), in one topic (channel), or in one conversation.",
  Authority: "What an agent may do with a memory: act on it (a ring around its bead), or only be informed by it.",
  Curator: "Who put a memory here: you (author), an agent on its own, or an import.",
  Held: "Kept apart until you decide. Agents do not get it.",
  Unverified: "Nobody vouches for who wrote it. Agents see it marked as such, and may not act on it.",
  Fading: "A memory that nobody uses loses weight with time. Using it, or stating it again, brings it back.",
  Rivals: "Two memories that give one thing two values. Both stay until you say which one holds.",
  Forgotten: "Taken out of what agents find. Its row stays, so you can bring it back.",
  Session: "One conversation of an agent with you. Its transcript is where quotations come from.",
};

/** Show what the words mean. */
export function explain() {
  ask("What the words mean", (close) => [
    h(
      "dl",
      { class: "terms" },
      Object.entries(TERMS).map(([word, meaning]) => [h("dt", null, word), h("dd", null, meaning)]),
    ),
    h("div", { class: "row end" }, h("button", { class: "first", onclick: () => close() }, "Good")),
  ]);
}
