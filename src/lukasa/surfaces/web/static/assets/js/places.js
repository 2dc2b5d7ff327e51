// Tiers, and the channel or conversation that some of them need.
import { field, select } from "./parts.js";

const known = new Map();

/** Return the tiers of a workspace; `ready(query)` says whether the query chooses every key that a tier needs. */
export async function tiersOf(page) {
  if (!known.has(page.w)) known.set(page.w, (await page.api.get("overview")).tiers);
  return known
    .get(page.w)
    .map((tier) => ({ ...tier, ready: (query) => (tier.needs ?? []).every((key) => query.get(key)) }));
}

/** Return the fields that choose a channel and a conversation. */
export async function places(page, query) {
  const needs = new Set((await tiersOf(page)).flatMap((tier) => tier.needs ?? []));
  const fields = [];
  if (needs.has("channel")) {
    const { channels } = await page.api.get("channels");
    fields.push(
      field(
        "Channel",
        select([["", "none"], ...channels.map((one) => [one.id, one.name])], query.get("channel"), { name: "channel" }),
      ),
    );
  }
  if (needs.has("conversation")) {
    const { conversations } = await page.api.get("conversations");
    fields.push(
      field(
        "Conversation",
        select(
          [["", "none"], ...conversations.map((one) => [one.id, `${one.ref_code} (${one.status})`])],
          query.get("conversation"),
          { name: "conversation" },
        ),
      ),
    );
  }
  return fields;
}
