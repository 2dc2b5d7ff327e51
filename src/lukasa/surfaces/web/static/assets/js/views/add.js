// Add an entry, and show what the checks decided about it.
import { h, put } from "../dom.js";
import { outcome } from "../entries.js";
import { doing, field, head, select } from "../parts.js";
import { places, tiersOf } from "../places.js";
import { split } from "../editing.js";

const KINDS = [
  ["", "decide for me"],
  ["semantic", "semantic: a fact"],
  ["episodic", "episodic: an event"],
  ["procedural", "procedural: a rule or a preference"],
];
const LIVES = [
  ["", "as the tier says"],
  ["long_term", "long term"],
  ["short_term", "short term"],
  ["conversation", "only this conversation"],
];

export async function show(page) {
  const tiers = await tiersOf(page);
  const content = h("textarea", {
    name: "content",
    required: true,
    placeholder: "Decisions are made on Mondays, by Ada.",
  });
  const tier = select(
    tiers.map((one) => one.name),
    tiers.some((one) => one.name === "workspace") ? "workspace" : tiers[0]?.name,
    { name: "tier" },
  );
  const kind = select(KINDS, "", { name: "kind" });
  const lifetime = select(LIVES, "", { name: "lifetime" });
  const shown = h("output", { class: "num" }, "0.5");
  const importance = h("input", {
    type: "range",
    min: 0,
    max: 1,
    step: 0.05,
    value: 0.5,
    name: "importance",
    oninput: () => put(shown, importance.value),
  });
  const tags = h("input", { name: "tags", placeholder: "meetings, decisions" });
  const where = h("div", { class: "filters" }, await places(page, page.query));
  const said = h("div", { class: "stack" });
  const need = () => {
    const needs = tiers.find((one) => one.name === tier.value)?.needs ?? [];
    where.hidden = !needs.length;
    for (const control of where.querySelectorAll("select"))
      control.parentElement.hidden = !needs.includes(control.name);
  };
  tier.addEventListener("change", need);
  need();
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: doing(said, async () => {
        const body = {
          content: content.value,
          tier: tier.value,
          importance: Number(importance.value),
          tags: split(tags.value),
        };
        if (kind.value) body.kind = kind.value;
        if (lifetime.value) body.lifetime = lifetime.value;
        for (const control of where.querySelectorAll("select"))
          if (!control.parentElement.hidden && control.value) body[control.name] = control.value;
        const written = await page.api.post("entries", body);
        put(said, outcome(page, written));
        if (written.entry) {
          content.value = "";
          tags.value = "";
        }
        content.focus();
      }),
    },
    field("What should be remembered?", content, "A full sentence that makes sense on its own."),
    h(
      "div",
      { class: "filters" },
      field("Tier", tier, "how far it reaches"),
      field("Kind", kind),
      field("Lifetime", lifetime),
    ),
    where,
    h("div", { class: "filters" }, field("Importance", importance, shown), field("Tags", tags, "separated by commas")),
    h("div", null, h("button", { class: "first" }, "Remember")),
    said,
  );
  return [
    head(
      "Add an entry",
      "Your entry passes the same checks as an agent's. The answer says what became of it, and why.",
    ),
    h("div", { class: "panel" }, form),
  ];
}
