// The overview: entries by tier, growth, entries that fade next, and items that wait for a decision.
import { h } from "../dom.js";
import { doubt } from "../entries.js";
import { badge, chart, empty, head, number, table, time } from "../parts.js";

export async function show(page) {
  const seen = await page.api.get("overview");
  seen.waiting = seen.held + seen.proposals + seen.rivals + seen.submissions;
  dispatchEvent(new CustomEvent("counts", { detail: { waiting: seen.waiting } }));
  const total = seen.tiers.reduce((sum, tier) => sum + all(tier), 0);
  return [
    head(
      "Numbers",
      `The memory of ${page.w} by tier, how it grew, and the work behind it.`,
      h("a", { class: "button first", href: page.link("add") }, "Add an entry"),
      h("a", { class: "button", href: page.link("browse") }, "Search"),
    ),
    h(
      "div",
      { class: "stack wide" },
      total
        ? null
        : empty(
            "No entries yet",
            "Agents add entries as they work, and you can add entries yourself.",
            h("a", { class: "button first", href: page.link("add") }, "Add the first entry"),
          ),
      h(
        "section",
        { "aria-label": "Tiers" },
        h(
          "div",
          { class: "grid" },
          seen.tiers.map((tier) => tierPanel(page, tier)),
        ),
      ),
      h(
        "div",
        { class: "two" },
        h(
          "div",
          { class: "stack wide" },
          h(
            "section",
            { class: "panel" },
            h("h2", null, "Growth"),
            chart(
              () => page.api.chart("growth"),
              "Entries that are there at the end of each day: learned, less those retired by then.",
            ),
          ),
          fading(page, seen.fading),
        ),
        h(
          "div",
          { class: "stack wide" },
          waiting(page, seen),
          work(page, seen),
          meaning(seen),
          h(
            "section",
            { class: "panel" },
            h("h2", null, "Event log"),
            h("p", null, h("span", { class: "big" }, number(seen.events, 0)), " changes so far"),
            h("a", { href: page.link("log") }, "Look into the log"),
          ),
        ),
      ),
    ),
  ];
}

const all = (tier) => Object.values(tier.states).reduce((sum, count) => sum + count, 0);

function tierPanel(page, tier) {
  const link = (state) => page.link("browse", new URLSearchParams({ tier: tier.name, ...(state ? { state } : {}) }));
  const others = Object.entries(tier.states).filter(([state]) => state !== "active");
  return h(
    "div",
    { class: "panel" },
    h("h2", null, h("a", { href: link() }, tier.name)),
    h("p", null, h("span", { class: "big" }, number(tier.states.active ?? 0, 0)), " active"),
    h(
      "div",
      { class: "meta" },
      others.length
        ? others.map(([state, count]) => h("a", { href: link(state) }, `${number(count, 0)} ${state}`))
        : h("span", null, tier.home === "account" ? "shared by all your workspaces" : "nothing held or retired"),
    ),
  );
}

function fading(page, list) {
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Entries that decay next"),
    list.length
      ? table(
          ["Entry", "Tier", "Now", "In a month", "Last stated"],
          list.map(({ entry, now, ahead }) => [
            [
              entry.unverified ? [doubt(entry), " "] : null,
              h("a", { href: page.link("entry", entry.id) }, short(entry.content)),
            ],
            entry.tier,
            number(now),
            number(ahead),
            time(entry.confirmed_at),
          ]),
          { numeric: [2, 3], name: "Entries that decay next" },
        )
      : h("p", { class: "quiet" }, "No entry decays at present."),
  );
}

const short = (text) => (text.length > 90 ? `${text.slice(0, 89)}…` : text);

function waiting(page, seen) {
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Review inbox"),
    seen.waiting
      ? [
          h(
            "p",
            null,
            h("span", { class: "big" }, number(seen.waiting, 0)),
            seen.waiting === 1 ? " waits for you" : " wait for you",
          ),
          h("a", { href: page.link("inbox") }, "Decide"),
        ]
      : h("p", { class: "quiet" }, "Nothing waits for you."),
  );
}

function work(page, seen) {
  const states = Object.entries(seen.jobs).filter(([, count]) => count);
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Jobs"),
    states.length
      ? h(
          "div",
          { class: "row" },
          states.map(([state, count]) => [badge(state), h("span", { class: "num" }, count)]),
        )
      : h("p", { class: "quiet" }, "No background work yet."),
    h("a", { href: page.link("jobs") }, "All jobs"),
  );
}

function meaning({ vectors }) {
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Search by meaning"),
    vectors
      ? [
          h(
            "p",
            { class: "row" },
            badge(vectors.waiting ? "catching up" : "ready", vectors.waiting ? "warn" : "good"),
            h("span", { class: "wrap" }, vectors.model),
          ),
          vectors.waiting
            ? h(
                "p",
                { class: "small quiet" },
                `${number(vectors.waiting, 0)} entries have no vector yet; background work adds them.`,
              )
            : null,
        ]
      : [
          h("p", null, badge("keywords only", "warn")),
          h(
            "p",
            { class: "small quiet" },
            "There is no embedding model. Run ",
            h("code", null, "lukasa model pull"),
            ", then start the server again.",
          ),
        ],
  );
}
