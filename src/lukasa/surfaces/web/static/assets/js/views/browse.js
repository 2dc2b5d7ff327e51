// Browse and search: with words it searches as an agent would, without words it lists; the filters hold for both.
import { h, put } from "../dom.js";
import { card, hitCard, reasons } from "../entries.js";
import { empty, field, head, later, notice, number, select } from "../parts.js";
import { places, tiersOf } from "../places.js";

const KINDS = ["episodic", "semantic", "procedural"];
const CURATORS = ["author", "agent", "import"];
export const STATES = ["active", "held", "stale", "forgotten", "superseded", "archived", "invalidated", "pruned"];
const TEXTS = ["source", "category", "tag"];
const LIMIT = 25;

export async function show(page) {
  const tiers = await tiersOf(page);
  const place = await places(page, page.query);
  const words = h("input", {
    type: "search",
    name: "q",
    value: page.query.get("q") ?? "",
    placeholder: "What are you looking for?",
  });
  const chosen = page.query.getAll("tier");
  const form = h(
    "form",
    {
      class: "panel",
      role: "search",
      onsubmit: (event) => {
        event.preventDefault();
        page.go("browse", asked(form));
      },
    },
    h(
      "div",
      { class: "row low" },
      h("div", { class: "grow" }, field("Search", words)),
      h("button", { class: "first" }, "Search"),
    ),
    h(
      "fieldset",
      null,
      h("legend", null, "Tiers"),
      h(
        "div",
        { class: "row" },
        tiers.map((tier) =>
          h(
            "label",
            { class: "check" },
            h("input", { type: "checkbox", name: "tier", value: tier.name, checked: chosen.includes(tier.name) }),
            tier.name,
          ),
        ),
      ),
    ),
    h(
      "details",
      { open: [...page.query.keys()].some((key) => !["q", "tier"].includes(key)) },
      h("summary", null, "Filters"),
      h(
        "div",
        { class: "filters" },
        pick(page, "kind", "Kind", KINDS),
        pick(page, "curator", "Curator", CURATORS),
        pick(page, "state", "State", STATES),
        TEXTS.map((name) =>
          field(name[0].toUpperCase() + name.slice(1), h("input", { name, value: page.query.get(name) ?? "" })),
        ),
        ["since", "until"].map((name) =>
          field(
            name === "since" ? "Written since" : "Written until",
            h("input", { type: "date", name, value: page.query.get(name) ?? "" }),
          ),
        ),
        place,
      ),
    ),
    page.query.size ? h("div", null, h("a", { href: page.link("browse"), class: "small" }, "Clear all")) : null,
  );
  const searching = Boolean(page.query.get("q")?.trim());
  return [
    head(
      "Browse and search",
      "All entries of this workspace. Lists and searches on this page do not count as a use of an entry.",
    ),
    h("div", { class: "stack wide" }, form, searching ? hits(page) : listing(page, tiers)),
  ];
}

function pick(page, name, label, options) {
  return field(label, select([["", "any"], ...options.map((one) => [one, one])], page.query.get(name), { name }));
}

function asked(form) {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value.trim()) query.append(name, value.trim());
  return query;
}

function conditions(query) {
  const one = (name) => query.get(name) || undefined;
  const day = (name) => one(name) && new Date(`${query.get(name)}T00:00:00`).toISOString();
  return {
    kind: one("kind"),
    category: one("category"),
    source: one("source"),
    curator: one("curator"),
    state: one("state"),
    since: day("since"),
    until: day("until"),
    channel: one("channel"),
    conversation: one("conversation"),
  };
}

function hits(page) {
  const tiers = page.query.getAll("tier");
  const body = { query: page.query.get("q"), count: false, limit: LIMIT, ...conditions(page.query) };
  if (tiers.length) body.tiers = tiers;
  if (page.query.get("tag")) body.tags = [page.query.get("tag")];
  return later(
    () => page.api.post("read", body),
    (found) => [
      h("h2", null, found.hits.length ? `${found.hits.length} found` : "Nothing found"),
      found.notes.map((note) => notice("warn", note)),
      found.hits.length
        ? h("p", { class: "small quiet" }, `Found with the “${found.profile}” profile, best first.`)
        : empty(
            "No entry matches",
            "Try other words or fewer filters, or choose a state to search held and retired entries.",
          ),
      h(
        "ol",
        { class: "list" },
        found.hits.map((hit) =>
          hitCard(
            page,
            hit,
            h("div", { class: "small quiet" }, `score ${number(hit.score.final, 4)}`),
            reasons(hit),
          ),
        ),
      ),
    ],
  );
}

function listing(page, tiers) {
  const wanted = page.query.getAll("tier");
  const names = (wanted.length ? tiers.filter((tier) => wanted.includes(tier.name)) : tiers)
    .filter((tier) => tier.ready(page.query))
    .map((tier) => tier.name);
  const waiting = tiers.filter((tier) => wanted.includes(tier.name) && !tier.ready(page.query));
  const query = { ...conditions(page.query), tag: page.query.get("tag") || undefined };
  return h(
    "div",
    { class: "stack wide" },
    waiting.map((tier) =>
      notice("warn", `Each ${tier.name} has its own ${tier.name} tier: choose one under Filters.`),
    ),
    names.map((name) => section(page, name, query)),
  );
}

/** One tier, a page at a time. */
function section(page, tier, query) {
  const list = h("ul", { class: "list" });
  const more = h("div");
  const load = async (after) => {
    const found = await page.api.get("entries", { ...query, tier, limit: LIMIT, after });
    list.append(...found.entries.map((entry) => card(page, entry)));
    put(more, found.next ? h("button", { onclick: () => load(found.next) }, "Show more") : null);
    return found;
  };
  return h(
    "section",
    { class: "stack", "aria-label": `${tier} tier` },
    h("h2", null, `${tier[0].toUpperCase()}${tier.slice(1)} tier`),
    later(
      () => load(),
      (found) =>
        found.entries.length
          ? [list, more]
          : empty(
              "Nothing here",
              page.query.size ? "No entry of this tier matches the filters." : "This tier has no entries yet.",
              h("a", { class: "button", href: page.link("add") }, "Add an entry"),
            ),
    ),
  );
}
