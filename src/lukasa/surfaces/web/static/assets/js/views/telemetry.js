// Telemetry: counts, durations, failures and costs. It stays on this machine.
import { h } from "../dom.js";
import { chart, empty, field, head, number, plural, select, table } from "../parts.js";

const SPANS = [
  ["1d", "one day"],
  ["7d", "a week"],
  ["30d", "a month"],
  ["365d", "a year"],
];

export async function show(page) {
  const since = page.query.get("since") ?? "7d";
  const [seen, cost] = await Promise.all([page.api.get("stats", { since }), page.api.get("tokens", { since })]);
  const picker = select(SPANS, since, {
    name: "since",
    onchange: () => page.go("telemetry", new URLSearchParams({ since: picker.value })),
  });
  const events = Object.entries(seen.events).sort(([, a], [, b]) => b - a);
  return [
    head(
      "Telemetry",
      "Counts and durations of every step, never the text of an entry. They stay on this machine.",
      field("Since", picker),
    ),
    h(
      "div",
      { class: "stack wide" },
      h(
        "div",
        { class: "half" },
        h(
          "section",
          { class: "panel" },
          h("h2", null, "Steps by day"),
          chart(() => page.api.chart("daily", { days: parseInt(since, 10) }), "Red: failed steps."),
        ),
        h(
          "section",
          { class: "panel" },
          h("h2", null, "Mean duration"),
          chart(() => page.api.chart("durations", { days: parseInt(since, 10) })),
        ),
      ),
      h(
        "div",
        { class: "half" },
        h(
          "section",
          { class: "panel" },
          h("h2", null, "Tokens of memory to agents"),
          h("p", null, h("span", { class: "big" }, number(cost.tokens, 0)), ` for ${plural(cost.texts, "answer")}`),
          chart(() => page.api.chart("tokens", { days: parseInt(since, 10) }), "By day."),
        ),
        h(
          "section",
          { class: "panel" },
          h("h2", null, "To whom, and in vain"),
          cost.texts
            ? table(["Agent", "Tokens"], Object.entries(cost.by_agent).map(([name, count]) => [name, number(count, 0)]), { numeric: [1], name: "Tokens by agent" })
            : h("p", { class: "quiet" }, "Nothing went to an agent in this time."),
        cost.unused.length
          ? table(
              ["Shown and never used", "Times", "Tokens"],
              cost.unused.map((one) => [h("a", { href: page.link("entry", one.entry.id) }, one.entry.content), one.times, one.tokens]),
              { numeric: [1, 2], name: "Shown and never used" },
            )
          : null,
        ),
      ),
      h(
        "section",
        { class: "panel" },
        h("h2", null, "Steps"),
        seen.work.length
          ? table(
              ["Step", "Times", "Failed", "Mean", "Longest", "Counts"],
              seen.work.map((one) => [
                `${one.component} ${one.action}`,
                one.count,
                one.failures,
                `${number(one.mean_ms, 1)} ms`,
                `${number(one.max_ms, 1)} ms`,
                Object.entries(one.sums)
                  .map(([key, value]) => `${key} ${number(value, 1)}`)
                  .join(", "),
              ]),
              { numeric: [1, 2, 3, 4], name: "Steps" },
            )
          : empty("No steps in this time", "Background work reports each of its steps here."),
      ),
      h(
        "div",
        { class: "half" },
        h(
          "section",
          { class: "panel" },
          h("h2", null, "In recall"),
          h(
            "p",
            { class: "quiet" },
            `${number(seen.totals.recalled, 0)} entries, ${number(seen.totals.stale, 0)} of them stale; ${number(seen.totals.merged, 0)} repetitions were merged into them.`,
          ),
          Object.keys(seen.totals.categories).length
            ? table(["Category", "Entries"], Object.entries(seen.totals.categories), { numeric: [1], name: "In recall" })
            : null,
        ),
        h(
          "section",
          { class: "panel" },
          h("h2", null, "Changes of memory"),
          events.length
            ? table(["Event", "Times"], events, { numeric: [1], name: "Changes of memory" })
            : h("p", { class: "quiet" }, "None in this time."),
        ),
        h(
          "section",
          { class: "panel" },
          h("h2", null, "Models"),
          seen.spending.length
            ? table(
                ["Day", "Model", "Calls", "Tokens in", "Tokens out", "Cost"],
                seen.spending.map((one) => [
                  one.day,
                  one.model,
                  one.calls,
                  one.prompt,
                  one.completion,
                  one.cost ? number(one.cost, 4) : "—",
                ]),
                { numeric: [2, 3, 4, 5], name: "Models" },
              )
            : h("p", { class: "quiet" }, "No calls of a language model in this time."),
        ),
      ),
    ),
  ];
}
