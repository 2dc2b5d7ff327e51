// The history of an entry: its versions, the changes of each, and every event about it.
import { diff } from "./diff.js";
import { h, put } from "./dom.js";
import { steps } from "./entries.js";
import { badge, later, table, time } from "./parts.js";

export function past(page, versions) {
  const shown = h("div", { class: "stack" });
  const pick = (i) =>
    put(
      shown,
      h("h3", null, i ? `Changes of version ${versions[i].entry.version}` : "The first version"),
      diff(i ? versions[i - 1].entry.content : "", versions[i].entry.content),
      other(i ? versions[i - 1].entry : null, versions[i].entry),
    );
  pick(versions.length - 1);
  const rows = versions
    .map((one, i) => [
      one.entry.version,
      one.action.replace("entry.", ""),
      badge(one.entry.state),
      one.cause,
      one.actor,
      time(one.at),
      h(
        "button",
        { class: "small", onclick: () => pick(i) },
        "Show",
        h("span", { class: "away" }, ` version ${one.entry.version}`),
      ),
    ])
    .reverse();
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "History"),
    table(["#", "What", "State", "Why", "Who", "When", "More"], rows, { name: "Versions" }),
    shown,
    later(
      () => page.api.get(`entries/${versions[0].entry.id}/ledger`),
      ({ events }) =>
        h(
          "details",
          null,
          h("summary", null, `Every event (${events.length})`),
          events.map((event) =>
            h(
              "div",
              { class: "stack tight small" },
              h(
                "p",
                null,
                h("span", { class: "strong" }, event.action),
                ` by ${event.actor.principal}, `,
                time(event.at),
              ),
              Array.isArray(event.detail.ledger) ? steps(event.detail.ledger) : null,
            ),
          ),
        ),
    ),
  );
}

function other(before, after) {
  if (!before) return null;
  const changed = ["importance", "kind", "lifetime", "state", "merged_count"]
    .filter((key) => before[key] !== after[key])
    .map((key) => `${key}: ${before[key]} → ${after[key]}`);
  if (before.tags.join() !== after.tags.join())
    changed.push(`tags: ${before.tags.join(", ") || "none"} → ${after.tags.join(", ") || "none"}`);
  return changed.length ? h("p", { class: "small" }, changed.join("; ")) : null;
}
