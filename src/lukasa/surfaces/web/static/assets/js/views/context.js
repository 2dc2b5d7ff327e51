// The context document that an agent would get for a prompt: its blocks, its size, and the reason for each block.
import { h, meter, put } from "../dom.js";
import { doubt, look, wordsOf } from "../entries.js";
import { badge, doing, empty, field, head, notice, number, select, table } from "../parts.js";
import { places } from "../places.js";

export async function show(page) {
  const query = h("textarea", { name: "query", rows: 3, placeholder: "Write the release notes for Friday" });
  const budget = h("input", { type: "number", name: "budget", min: 1, placeholder: "as the spec says" });
  const profile = select(["balanced", "auto", "lean", "deep"], "balanced", { name: "profile" });
  const where = await places(page, page.query);
  const said = h("div", { class: "stack wide" });
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: doing(said, async () => {
        const body = { query: query.value, profile: profile.value };
        if (budget.value) body.budget = Number(budget.value);
        for (const control of form.querySelectorAll("select[name=channel], select[name=conversation]"))
          if (control.value) body[control.name] = control.value;
        put(said, drawn(page, await page.api.post("context", body)));
      }),
    },
    field("The prompt", query, "Leave it empty to see only what always holds."),
    h("div", { class: "filters" }, field("Budget in tokens", budget), field("Profile", profile), where),
    h("div", null, h("button", { class: "first" }, "Show the context")),
  );
  return [
    head(
      "What an agent sees",
      "The document that an agent would get for a prompt: your pages, rules that always hold, and what each tier recalls. A preview does not count as a use.",
    ),
    h("div", { class: "stack wide" }, h("div", { class: "panel" }, form), said),
  ];
}

function drawn(page, made) {
  const { document: doc } = made;
  const parts = [
    ...doc.pinned.map((one) => ["pinned", one.name]),
    ...doc.standing.map((one) => ["standing", one.content]),
    ...doc.recalled.flatMap((slice) => slice.items.map((one) => [slice.tier, one.content])),
  ];
  return [
    h(
      "section",
      { class: "panel" },
      h("h2", null, `${number(made.tokens, 0)} tokens, ${parts.length} ${parts.length === 1 ? "block" : "blocks"}`),
      meter(
        made.tokens / made.budget,
        `${made.tokens} tokens beside a budget of ${made.budget}`,
        made.tokens > made.budget ? "warn" : "",
      ),
      h(
        "p",
        { class: "small quiet" },
        `The budget without pinned pages is ${number(made.budget, 0)} tokens. Pinned pages are always whole.`,
      ),
    ),
    made.notes.map((note) => notice("warn", note)),
    parts.length ? null : empty("Memory has nothing for this prompt", "The document would say only that."),
    doc.pinned.length
      ? block(
          "Your pages",
          doc.pinned.map((one) =>
            h(
              "li",
              { class: "card" },
              h("a", { class: "title", href: page.link("pages", one.name) }, one.name),
              h("p", { class: "small quiet wrap" }, one.body.slice(0, 200)),
              h(
                "div",
                { class: "meta" },
                badge("always whole", "accent"),
                h("span", null, `${one.tier} tier, edited ${one.edited}`),
              ),
            ),
          ),
        )
      : null,
    doc.standing.length
      ? block(
          "Rules and preferences that always hold",
          doc.standing.map((one) => item(page, made, one)),
        )
      : null,
    doc.recalled.map((slice) =>
      block(
        `Recalled from the ${slice.tier} tier`,
        slice.items.map((one) => item(page, made, one)),
      ),
    ),
    made.evicted.length
      ? h(
          "section",
          { class: "panel" },
          h("h2", null, `${made.evicted.length} did not fit`),
          table(
            ["Entry", "Tier", "Why"],
            made.evicted.map((one) => [
              wordsOf(page, one.id),
              one.tier,
              one.reason,
            ]),
            { name: "Entries that did not fit" },
          ),
        )
      : null,
    h(
      "details",
      { class: "panel" },
      h("summary", null, "The text exactly as an agent gets it"),
      h("pre", { tabindex: "0" }, made.text),
    ),
  ];
}

const block = (title, items) =>
  h("section", { class: "stack" }, h("h2", null, title), h("ul", { class: "list" }, items));

function item(page, made, one) {
  const why = (made.matched[one.id] ?? [])
    .filter((signal) => signal.rank)
    .map((signal) => `${signal.signal} #${signal.rank}`);
  return h(
    "li",
    { class: look({ unverified: one.authority === "none" }) },
    h("a", { class: "title", href: page.link("entry", one.id) }, one.content),
    h(
      "div",
      { class: "meta" },
      doubt({ unverified: one.authority === "none" }),
      h("span", null, one.kind),
      badge(`authority ${one.authority}`, one.authority === "act" ? "good" : one.authority === "none" ? "bad" : ""),
      h("span", null, `importance ${number(one.importance, 2)}`),
      h("span", null, `by ${one.curator}, ${one.recorded}`),
      h("span", null, why.length ? `here because of ${why.join(", ")}` : "here because it always applies"),
    ),
  );
}
