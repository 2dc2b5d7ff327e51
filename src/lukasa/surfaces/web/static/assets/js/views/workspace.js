// This workspace: give it another name, merge it into another one, or remove it for good after a plan.
import { h, put } from "../dom.js";
import { doing, empty, field, head, notice, number, plural, select, table } from "../parts.js";

const TYPED = 12;
const OUTCOMES = [
  ["new", "New"],
  ["both", "Both kept"],
  ["known", "There already"],
  ["left", "Left out"],
];
const word = (kind) => kind.replaceAll("_", " ");

export async function show(page) {
  return [
    head("This workspace", `Rename ${page.w}, merge it into another workspace, or remove it for good.`),
    h("div", { class: "stack wide" }, renaming(page), merging(page), removing(page)),
  ];
}

/** Show a workspace; the page reads its list of workspaces anew. */
function enter(name) {
  location.hash = `#/${encodeURIComponent(name)}/workspace`;
  location.reload();
}

function renaming(page) {
  const said = h("div", { class: "stack" });
  const name = h("input", { name: "name", required: true, autocomplete: "off", value: page.w });
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: doing(said, async () => {
        const done = await page.api.post("rename", { name: name.value.trim() });
        enter(done.name);
      }),
    },
    field("New name", name, "Its memory, its links and its grants stay. Commands name it with -w from then on."),
    h("div", null, h("button", null, "Rename")),
    said,
  );
  return h("section", { class: "panel stack" }, h("h2", null, "Rename"), form);
}

function merging(page) {
  const others = page.workspaces.map((one) => one.name).filter((name) => name !== page.w);
  const panel = h("section", { class: "panel stack" });
  if (!others.length) return put(panel, h("h2", null, "Merge"), empty("No other workspace", "A merge needs a second workspace: lukasa workspace create NAME."));
  const said = h("div", { class: "stack" });
  const into = select(others, others[0], { name: "into", onchange: () => put(said) });
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: doing(said, async () => {
        put(said, merge(page, into.value, await page.api.post("merge/plan", { into: into.value })));
      }),
    },
    field(`Take all of ${page.w} into`, into, `Of two different texts both are kept. ${page.w} stays as it is; remove it afterwards if you like.`),
    h("div", null, h("button", null, "Show what would change")),
  );
  return put(panel, h("h2", null, "Merge"), form, said);
}

function merge(page, into, plan) {
  const place = h("div", { class: "stack" });
  const said = h("div", { class: "stack" });
  const rows = plan.stores.flatMap((store) =>
    Object.entries(store.counts).map(([kind, of]) => [word(kind), ...OUTCOMES.map(([key]) => number(of[key] ?? 0, 0))]),
  );
  return put(
    place,
    h("p", { class: "strong" }, plan.done ? `Merged into ${into}.` : "Nothing has changed yet."),
    rows.length
      ? table(["What", ...OUTCOMES.map(([, label]) => label)], rows, { numeric: [1, 2, 3, 4], name: `What becomes of ${page.w}` })
      : h("p", { class: "quiet" }, "There is nothing to merge."),
    plan.done
      ? h("p", null, h("a", { href: `#/${encodeURIComponent(into)}/home` }, `Go to ${into}`))
      : rows.length
        ? h(
            "div",
            null,
            h(
              "button",
              {
                class: "first",
                onclick: doing(said, async () => {
                  put(place, merge(page, into, await page.api.post("merge", { into, confirm: plan.digest })));
                }),
              },
              "Merge exactly this",
            ),
          )
        : null,
    said,
  );
}

function removing(page) {
  const said = h("div", { class: "stack" });
  const button = h(
    "button",
    {
      onclick: doing(said, async () => {
        put(said, removal(page, await page.api.post("remove/plan", {})));
      }),
    },
    "Show what would be removed",
  );
  return h(
    "section",
    { class: "panel stack" },
    h("h2", null, "Remove for good"),
    h("p", null, "All of its memory, its files with their git history, and the states of its chats. There is no undo: export it or back it up first if you may want it again."),
    h("div", null, button),
    said,
  );
}

function removal(page, plan) {
  const said = h("div", { class: "stack" });
  const wanted = plan.digest.slice(0, TYPED);
  const typed = h("input", { name: "digest", class: "mono", autocomplete: "off", spellcheck: "false", required: true });
  const go = h("button", { class: "danger", disabled: true }, `Remove ${page.w} for good`);
  typed.addEventListener("input", () => {
    go.disabled = typed.value.trim() !== wanted;
  });
  const rows = Object.entries(plan.rows).map(([kind, count]) => [word(kind), number(count, 0)]);
  return h(
    "div",
    { class: "stack" },
    rows.length ? table(["What", "How many"], rows, { numeric: [1], name: "What would be removed" }) : null,
    plan.files ? h("p", null, `${plural(plan.files, "file")} beside it.`) : null,
    plan.grants.length ? notice("warn", `These grants lose it: ${plan.grants.join(", ")}.`) : null,
    h(
      "form",
      {
        class: "stack",
        onsubmit: doing(said, async () => {
          await page.api.post("remove", { confirm: typed.value.trim() }, { repeatable: false });
          location.hash = "";
          location.reload();
        }),
      },
      h("p", null, "To confirm, type the first ", TYPED, " characters of the plan's digest: ", h("code", { class: "digest" }, wanted)),
      field("Digest of the removal", typed, "If memory has changed since the plan, nothing is removed."),
      h("div", null, go),
      said,
    ),
  );
}
