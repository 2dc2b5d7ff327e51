// Parts of several views about entries: a card, the reasons of a match, the outcome of a write.
import { h } from "./dom.js";
import { badge, number, time } from "./parts.js";

const UNVERIFIED = "Text of unknown authorship: nobody vouches for it, and no agent may act on it.";

/** Return the mark of text that nobody vouches for; null for any other. */
export const doubt = (entry) =>
  entry.unverified ? h("span", { class: "badge bad", title: UNVERIFIED }, "unverified") : null;

/** Return the class of a card or row about an entry: unverified text looks unverified wherever it is shown. */
export const look = (entry, name = "card") => (entry.unverified ? `${name} unverified` : name);

export function meta(entry, extra) {
  return h(
    "div",
    { class: "meta" },
    badge(entry.state),
    doubt(entry),
    entry.sensitive ? badge("sensitive", "warn") : null,
    entry.grounds && entry.grounds.retention !== "active" ? badge(entry.grounds.retention) : null,
    h("span", null, entry.tier),
    h("span", null, entry.kind),
    h("span", null, `importance ${number(entry.importance, 2)}`),
    entry.category ? h("span", null, entry.category.name) : null,
    h("span", null, `by ${entry.curator}`),
    entry.source ? h("span", null, `from ${entry.source}`) : null,
    entry.owner && entry.owner !== "shared" ? badge(`only ${entry.owner}`, "accent") : null,
    entry.tags.map((tag) => badge(`#${tag}`)),
    time(entry.updated_at),
    extra,
  );
}

/** Return a link to an entry that only its id tells of: its words come as soon as they are here. */
export function wordsOf(page, id) {
  const link = h("a", { href: page.link("entry", id) }, "a memory");
  page.api.get(`entries/${encodeURIComponent(id)}`).then(
    ({ content }) => (link.textContent = content.length > 100 ? `${content.slice(0, 99)}…` : content || "(empty)"),
    () => (link.textContent = "a memory that is not here any more"),
  );
  return link;
}

export function card(page, entry, ...more) {
  return showing(page, entry, entry.content || "(empty)", more);
}

/** Return the card of a hit; of a long entry it shows the part that matches. */
export function hitCard(page, hit, ...more) {
  const whole = hit.entry.content || "(empty)";
  const part = hit.excerpt || whole;
  const before = whole.startsWith(part) ? "" : "… ";
  const after = whole.endsWith(part) ? "" : " …";
  const doubts = hit.withdrawn.map((one) =>
    h("p", { class: "small" }, badge("rests on something that was withdrawn", "warn"), ` ${one.source} ${one.reason}`),
  );
  return showing(page, hit.entry, `${before}${part}${after}`, [doubts, earlier(page, hit.earlier), more]);
}

/** List the entries under a hit: they say the same, or were said before and may no longer hold. */
function earlier(page, entries) {
  if (!entries.length) return null;
  return h(
    "ul",
    { class: "earlier small", "aria-label": "Earlier" },
    entries.map((one) =>
      h(
        "li",
        null,
        h("span", { class: "quiet" }, one.relation === "same" ? "also said: " : "earlier: "),
        h("a", { href: page.link("entry", one.id) }, one.content),
        one.unverified ? [" ", doubt(one)] : null,
        h("span", { class: "quiet" }, " · ", time(one.said), one.relation === "same" ? "" : " · may no longer hold"),
      ),
    ),
  );
}

function showing(page, entry, text, more) {
  return h(
    "li",
    { class: look(entry) },
    h("a", { class: "title", href: page.link("entry", entry.id) }, text),
    meta(entry),
    more,
  );
}

/** Explain the rank of a hit: the factors of its score, and the contribution of each signal. */
export function reasons(hit) {
  const { score } = hit;
  return h(
    "details",
    null,
    h("summary", null, `Why: ${hit.because}`),
    h(
      "div",
      { class: "stack tight" },
      factors([
        ["match", score.match],
        "×",
        ["prior", score.prior],
        "×",
        ["tier", score.tier_weight],
        "×",
        ["trust", score.trust_weight],
        "=",
        ["score", score.final],
      ]),
      h(
        "p",
        { class: "small quiet" },
        `Relevance ${number(score.relevance)}: importance ${number(score.importance, 2)} × decay ${number(score.decay)} × use ${number(score.frequency)}. The prior takes: ${score.factors.join(", ") || "nothing"}.`,
      ),
      h(
        "ul",
        { class: "list small" },
        hit.matched.map((one) =>
          h(
            "li",
            null,
            h("span", { class: "strong" }, one.signal),
            one.rank
              ? `: place ${one.rank}, score ${number(one.score)}, ${one.share < 0 ? "which counts against it" : `${one.percent} % of the match`}`
              : ": did not find it",
          ),
        ),
      ),
    ),
  );
}

export const factors = (parts) =>
  h(
    "div",
    { class: "factors" },
    parts.map((part) =>
      Array.isArray(part)
        ? h("span", { class: "part" }, h("b", null, number(part[1])), h("span", null, part[0]))
        : h("span", { class: "op" }, part),
    ),
  );

const SAID = {
  stored: "Stored.",
  held: "Held for review: agents do not get it until you accept it.",
  merged: "Merged: memory already had this statement, and counts it once more.",
  replaced: "Stored, and another entry is retired for it.",
  discarded: "Discarded: nothing was stored.",
  updated: "Changed.",
};

/** Show the outcome of a write, and its reason. */
export function outcome(page, written) {
  const tone = { held: "warn", discarded: "bad" }[written.outcome] ?? "good";
  return h(
    "div",
    { class: `notice ${tone}`, role: "status" },
    h(
      "p",
      { class: "row" },
      badge(written.outcome),
      h("span", { class: "strong" }, SAID[written.outcome] ?? written.outcome),
    ),
    written.reason ? h("p", null, `Reason: ${written.reason}`) : null,
    written.entry ? h("p", null, h("a", { href: page.link("entry", written.id) }, "Open the entry")) : null,
    written.replaces.length
      ? h(
          "p",
          { class: "small" },
          "It replaces ",
          written.replaces.map((id, i) => [i ? ", " : "", wordsOf(page, id)]),
        )
      : null,
    steps(written.ledger),
  );
}

export function steps(ledger) {
  return h(
    "details",
    null,
    h("summary", null, "Every step"),
    h(
      "ul",
      { class: "list small" },
      ledger.map((one) =>
        h(
          "li",
          null,
          h("span", { class: "strong" }, one.step),
          " ",
          badge(one.outcome, ""),
          one.reason ? ` ${one.reason}` : "",
        ),
      ),
    ),
  );
}

/** Show the quotes that support an entry. */
export const quotes = (said) =>
  said.map((quote) =>
    h(
      "div",
      { class: "stack tight" },
      h("blockquote", null, quote.text || "(the message is no longer kept)"),
      h("p", { class: "small quiet" }, `${quote.role || "message"}${quote.title ? ` in “${quote.title}”` : ""}`),
    ),
  );
