// Scrub: remove memory for good. First the plan, then, after the user types its digest, exactly what it lists.
import { h, put } from "../dom.js";
import { doing, field, head, notice, number, select, table } from "../parts.js";
import { places, tiersOf } from "../places.js";

const MODES = [
  ["full", "all of it, pages too"],
  ["keep_named", "all but your pages"],
];
const TYPED = 12;

export async function show(page) {
  const tiers = await tiersOf(page);
  const what = select(
    [...tiers.map((tier) => [tier.name, `the ${tier.name} tier`]), ["thread", "one conversation, all of it"]],
    page.query.get("tier") ?? "workspace",
    { name: "what" },
  );
  const mode = select(MODES, "keep_named", { name: "mode" });
  const where = h("div", { class: "filters" }, await places(page, page.query));
  const said = h("div", { class: "stack wide" });
  const need = () => {
    const thread = what.value === "thread";
    const needs = thread ? ["conversation"] : (tiers.find((tier) => tier.name === what.value)?.needs ?? []);
    mode.parentElement?.toggleAttribute("hidden", thread);
    where.hidden = !needs.length;
    for (const control of where.querySelectorAll("select"))
      control.parentElement.hidden = !needs.includes(control.name);
    put(said);
  };
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: doing(said, async () => {
        const target = what.value === "thread" ? { mode: "purge_thread" } : { tier: what.value, mode: mode.value };
        for (const control of where.querySelectorAll("select"))
          if (!control.parentElement.hidden && control.value) target[control.name] = control.value;
        put(said, manifest(page, target, await page.api.post("scrub/plan", target)));
      }),
    },
    h("div", { class: "filters" }, field("Remove", what), field("How much", mode)),
    where,
    h("div", null, h("button", null, "Show the plan")),
  );
  what.addEventListener("change", need);
  need();
  return [
    head(
      "Scrub",
      "A scrub removes memory for good, from rows, history and files; you cannot undo it. So you see a plan first, and confirm it with its digest. To take single entries out of recall, forget them instead.",
    ),
    h("div", { class: "stack wide" }, h("div", { class: "panel" }, form), said),
  ];
}

function manifest(page, target, plan) {
  const typed = h("input", { name: "digest", class: "mono", autocomplete: "off", spellcheck: "false", required: true });
  const go = h("button", { class: "danger", disabled: true }, "Remove for good");
  const wanted = plan.digest.slice(0, TYPED);
  typed.addEventListener("input", () => {
    go.disabled = typed.value.trim() !== wanted;
  });
  const said = h("div", { class: "stack" });
  const total = plan.lines.reduce((sum, line) => sum + line.count, 0);
  const panel = h("section", { class: "panel" });
  return put(
    panel,
    h("h2", null, total ? `${number(total, 0)} items to remove` : "Nothing to remove"),
    table(
      ["What", "How many"],
      plan.lines.filter((line) => line.count).map((line) => [line.what || line.kind, line.count]),
      { numeric: [1], name: "Items to remove" },
    ),
    plan.warnings.map((warning) => notice("warn", warning)),
    plan.kept.length
      ? table(
          ["Stays", "Because of"],
          plan.kept.map((row) => [h("code", null, row.id), row.actions.join(", ")]),
          { name: "Entries that stay" },
        )
      : null,
    plan.sample.length
      ? h(
          "details",
          null,
          h("summary", null, "Some of the entries"),
          h(
            "ul",
            { class: "list small" },
            plan.sample.map((id) => h("li", null, h("a", { href: page.link("entry", id) }, id))),
          ),
        )
      : null,
    total
      ? h(
          "form",
          {
            class: "stack",
            onsubmit: doing(said, async () => {
              const done = await page.api.post("scrub/execute", { ...target, confirm: typed.value.trim() });
              put(
                panel,
                notice(
                  "good",
                  h("p", { class: "strong" }, "Removed."),
                  h(
                    "p",
                    null,
                    `Event ${done.event} of the log records it, in numbers and without the texts.${done.swept ? "" : " The files are rewritten when no process reads them any more."}`,
                  ),
                ),
              );
            }),
          },
          h(
            "p",
            null,
            "To confirm, type the first ",
            TYPED,
            " characters of the plan's digest: ",
            h("code", { class: "digest" }, wanted),
          ),
          field("Digest", typed, "If memory has changed since the plan, nothing is removed."),
          h("div", null, go),
          said,
        )
      : null,
  );
}
