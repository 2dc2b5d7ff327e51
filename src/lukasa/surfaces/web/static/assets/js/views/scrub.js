// Scrub and erase: remove memory for good. First the plan, then, after the user types its digest, exactly what it lists.
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
      "Scrub and erase",
      "A scrub removes memory for good, from rows, history and files; an erasure removes one entry, source or person with all that was derived from it. You cannot undo either. So you see a plan first, and confirm it with its digest. To take single entries out of recall, forget them instead.",
    ),
    h(
      "div",
      { class: "stack wide" },
      h("div", { class: "panel" }, h("h2", null, "Scrub a tier or a conversation"), form),
      said,
      ...(await erasing(page)),
    ),
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

const KINDS = [
  ["person", "a person"],
  ["entry", "one entry, by its id"],
  ["source", "a source"],
];
const SHARED = [
  ["redact", "take the name out"],
  ["remove", "remove them"],
];

async function erasing(page) {
  const kind = select(KINDS, page.query.get("entry") ? "entry" : "person", { name: "kind" });
  const name = h("input", { name: "name", autocomplete: "off", required: true, value: page.query.get("entry") ?? "" });
  const shared = select(SHARED, "redact", { name: "shared" });
  const account = h("input", { type: "checkbox", name: "account" });
  const said = h("div", { class: "stack" });
  const receipts = h("div", { class: "stack" });
  const listed = async () => put(receipts, receiptList((await page.api.get("erasures")).receipts));
  const plan = async (group) => {
    const target = { [kind.value]: name.value.trim(), shared: shared.value, account: account.checked, group };
    const shown = await page.api.post("erase/plan", target);
    put(said, shown.digest ? erasure(page, target, shown, listed) : people(shown, plan, said));
  };
  const form = h(
    "form",
    { class: "stack", onsubmit: doing(said, () => plan([])) },
    h("div", { class: "filters" }, field("Erase", kind), field("Name or id", name), field("Entries that name others too", shared)),
    h("label", null, account, " in all workspaces and in the account"),
    h("div", null, h("button", null, "Show what would be erased")),
  );
  await listed();
  return [h("div", { class: "panel" }, h("h2", null, "Erase an entry, a source or a person"), form), said, receipts];
}

function people(shown, plan, said) {
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Several people are named like that"),
    h("p", null, "Choose which one is meant."),
    h(
      "div",
      { class: "filters" },
      shown.groups.map((group) =>
        h("button", { onclick: doing(said, () => plan([group.name])) }, `${group.name} (${number(group.texts, 0)})`),
      ),
    ),
  );
}

function erasure(page, target, shown, listed) {
  const typed = h("input", { name: "erase-digest", class: "mono", autocomplete: "off", spellcheck: "false", required: true });
  const go = h("button", { class: "danger", disabled: true }, "Erase for good");
  const wanted = shown.digest.slice(0, TYPED);
  typed.addEventListener("input", () => {
    go.disabled = typed.value.trim() !== wanted;
  });
  const said = h("div", { class: "stack" });
  const panel = h("section", { class: "panel" });
  const list = (rows, columns, name) => (rows.length ? table(columns, rows, { name }) : null);
  return put(
    panel,
    h("h2", null, `To erase: ${shown.name}`),
    shown.kind === "person" ? h("p", null, `Searched for: ${shown.names.join(", ")}`) : null,
    list(shown.lines.map((line) => [line.what, line.count]), ["What", "How many"], "Rows to erase"),
    list(
      shown.shared.map((row) => [h("code", null, row.id), row.others.join(", "), row.outcome === "redact" ? "the name is taken out" : "removed"]),
      ["Entry", "Also names", "Outcome"],
      "Entries that name others too",
    ),
    list(Object.entries(shown.kept).map(([id, actions]) => [h("code", null, id), actions.join(", ")]), ["Stays", "Because of"], "Entries that stay"),
    list(shown.recipients.map((row) => [`${row.principal}@${row.surface}`, row.times]), ["Was shown to", "Times"], "Recipients"),
    list(Object.entries(shown.files), ["File", "Times"], "Files"),
    shown.warnings.map((warning) => notice("warn", warning)),
    h("p", null, `Not reached: ${shown.unreachable.join("; ")}.`),
    h(
      "form",
      {
        class: "stack",
        onsubmit: doing(said, async () => {
          const done = await page.api.post("erase", { ...target, confirm: typed.value.trim() });
          put(panel, receipt(done));
          await listed();
        }),
      },
      h("p", null, "To confirm, type the first ", TYPED, " characters of the plan's digest: ", h("code", { class: "digest" }, wanted)),
      field("Digest of the erasure", typed, "If memory has changed since the plan, nothing is removed."),
      h("div", null, go),
      said,
    ),
  );
}

function receipt(one) {
  const left = Object.entries(one.left);
  const clean = one.searched && one.swept && !left.length;
  return notice(
    clean ? "good" : "warn",
    h("p", { class: "strong" }, clean ? "Erased: the words are in no file and no table." : "Erased, but not everywhere."),
    left.map(([place, count]) => h("p", null, `${place} still holds the words, ${count} times.`)),
    one.swept ? null : h("p", null, "The files are rewritten when no process reads them any more."),
    one.unconfirmed.length ? h("p", null, `Not confirmed yet by ${one.unconfirmed.join(", ")}.`) : null,
    h("p", null, `Receipt ${one.id}, ${one.at.slice(0, 16).replace("T", " ")} UTC.`),
  );
}

function receiptList(receipts) {
  if (!receipts.length) return null;
  return h("section", { class: "panel" }, h("h2", null, "Receipts"), receipts.map(receipt));
}
