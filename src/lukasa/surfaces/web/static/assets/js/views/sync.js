// Sync: the machines that share this memory, what waits, and a round now.
import { get, post } from "../api.js";
import { h, put } from "../dom.js";
import { badge, doing, empty, facts, head, notice, number, plural, table, time } from "../parts.js";

const STANDING = { this: "this machine", member: "member", removed: "removed", outside: "not a member" };

export async function show(page) {
  const sync = await get("/v1/sync");
  const said = h("div", { class: "stack", "aria-live": "polite" });
  const now = doing(said, async () => {
    put(said, h("p", { class: "loading", role: "status" }, "Syncing …"));
    const done = await post("/v1/sync", {}, { repeatable: false });
    put(said, round(done));
    put(body, ...shown(await get("/v1/sync")));
  });
  const body = h("div", { class: "stack wide" }, ...shown(sync));
  return [
    head(
      "Sync",
      "Machines with one memory and no server: each writes signed, encrypted bundles to a folder or a git repository.",
      sync.configured && !sync.ended ? [h("button", { class: "first", onclick: now }, "Sync now")] : null,
    ),
    h("div", { class: "stack" }, said, body),
  ];
}

function shown(sync) {
  if (!sync.configured)
    return [
      empty(
        "This memory does not sync",
        "`lukasa sync init DIR` begins it on the first machine, `lukasa sync join DIR` on the others. Both ask for a passphrase.",
      ),
    ];
  return [
    sync.ended ? notice("bad", sync.ended) : null,
    h(
      "section",
      { class: "panel stack" },
      facts({
        place: h("code", { class: "wrap" }, sync.remote),
        "last sync": time(sync.synced_at),
        "not told yet": plural(sync.waiting, "change"),
        digest: h("code", { title: sync.state }, sync.state.slice(0, 16) || "none yet"),
      }),
    ),
    h(
      "section",
      { class: "panel stack" },
      h("h2", null, "Machines"),
      table(
        ["Machine", "Standing", "Trust", "Seen", "Reads", "Fingerprint"],
        sync.machines.map((one) => [
          one.name,
          badge(STANDING[one.standing], one.standing === "removed" || one.standing === "outside" ? "bad" : "good"),
          one.own ? "own" : one.trust,
          one.standing === "this" ? "—" : time(one.seen_at),
          reads(one),
          h("code", { class: "small" }, one.fingerprint),
        ]),
      ),
    ),
    ...sync.troubles.map((told) => notice("warn", told)),
    ...Object.entries(sync.unconfirmed).map(([receipt, names]) =>
      notice("warn", `Erasure ${receipt} is not confirmed by ${names.join(", ")}.`),
    ),
  ];
}

function reads(one) {
  if (one.standing === "this" || one.standing === "removed") return "—";
  if (one.behind) return `${plural(one.behind, "bundle")} behind`;
  return one.same ? "the same memory" : "all that was told";
}

function round(done) {
  const came = Object.entries(done.taken)
    .filter(([, count]) => count)
    .map(([name, count]) => `${number(count)} from ${name}`);
  const sent = done.sent ? `sent ${plural(done.sent, "change")}` : "sent nothing";
  return h(
    "div",
    { class: "stack" },
    notice("good", `Synced: ${sent}, took ${came.join(", ") || "nothing"}.`),
    ...done.joined.map((one) => notice("warn", `New machine: ${one.name}. Compare its fingerprint.`)),
    ...done.refused.map((told) => notice("bad", told)),
    ...done.waits.map((told) => notice("warn", told)),
  );
}
