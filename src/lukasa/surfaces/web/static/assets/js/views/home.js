// Home: what Lukasa knows.
import { faces } from "../faces.js";
import { h } from "../dom.js";
import { empty, head, later, panel, plural } from "../parts.js";

export async function show(page) {
  const { tiers } = await page.api.get("overview");
  const total = tiers.reduce((sum, tier) => sum + (tier.states.active ?? 0), 0);
  return [
    head(`What Lukasa knows about ${page.w}`, `${plural(total, "memory")}.`),
    total
      ? tiers
          .filter((tier) => !tier.needs.length)
          .map((tier) =>
            panel(
              tier.name,
              {},
              later(
                () => page.api.get("entries", { tier: tier.name, limit: 8 }),
                ({ entries }) => faces(page, entries),
              ),
            ),
          )
      : empty(
          "Nothing yet",
          "Agents add memories as they work, and you can add them yourself.",
          h("a", { class: "button first", href: page.link("add") }, "Add the first memory"),
        ),
  ];
}
