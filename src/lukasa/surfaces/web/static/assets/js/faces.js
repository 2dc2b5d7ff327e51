// A memory with its face: its words, who said it, where it holds, whether what it cites still stands, and its authority.
import { h } from "./dom.js";
import { doubt } from "./entries.js";
import { time } from "./parts.js";

const TONES = { account: 0, persistent: 0, workspace: 1, session: 1, channel: 2, conversation: 3, interaction: 3 };

const OWN = new Set(["", "user", "author", "agent"]); // sources that only repeat the curator

/** Return the class of a tier's colour: the same four everywhere; any other tier has the fifth. */
export const tone = (tier) => `t${TONES[tier] ?? 4}`;

/** Return the bead of a memory: the colour of its tier, with a ring if agents may act on it. */
export const bead = (entry) =>
  h("i", {
    class: `bead ${tone(entry.tier)}${entry.authority === "act" ? " ring" : ""}`,
    role: "img",
    "aria-label": `${entry.tier}${entry.authority === "act" ? ", agents may act on it" : ""}`,
  });

/** Say where a memory of this tier holds, in words. */
export const holds = (tier, w) =>
  ({
    account: "holds in every project",
    workspace: `holds in ${w}`,
    channel: "holds in one topic",
    conversation: "holds in one conversation",
  })[tier] ?? `tier ${tier}`;

const AGENTS = {
  "claude-code": "Claude Code",
  codex: "Codex",
  cursor: "Cursor",
  gemini: "Gemini CLI",
  opencode: "OpenCode",
  "claude-desktop": "Claude Desktop",
  messages: "chat",
  chatlog: "chat",
};

/** Return the name of an agent, or of the program that recorded a session, as people write it. */
export const agentName = (name) => AGENTS[name] ?? name;

/** Say who a memory is from: “you”, “Claude Code”, “you, via Claude Code”, or where it was imported from. */
export function sayer(entry) {
  const source = OWN.has(entry.source) ? "" : agentName(entry.source);
  const principal = entry.origin?.principal ?? "";
  if (entry.curator === "import") return `imported${source ? ` from ${source}` : ""}`;
  if (entry.curator === "author") return source && entry.source !== principal ? `you, via ${source}` : "you";
  return source || agentName(principal) || entry.curator;
}

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()} …` : text);

/** Return the quotation line of a memory: who said it, the words, and what it cites. */
export function said(page, entry, quotes = []) {
  const [quote] = quotes.filter((one) => one.text);
  const cited = (entry.citations ?? []).map((one) => [
    " · cites ",
    h("code", null, one.cites),
    one.verdict === "verified" ? " (stands)" : ` (${one.verdict})`,
  ]);
  return h(
    "span",
    { class: "said" },
    quote
      ? [quote.role === "user" ? "you" : quote.role, ": ", h("q", null, shortened(quote.text.trim(), 180))]
      : sayer(entry),
    entry.tier === "workspace" ? null : ` · ${holds(entry.tier, page.w)}`,
    cited,
  );
}

/**
 * Return a memory as a row of a list. `quotes` are the words that it rests on; `more` are buttons or notes below;
 * `source` replaces the line of who said it, or with null leaves it out.
 */
export function face(page, entry, { quotes = [], when = entry.confirmed_at, more = null, source } = {}) {
  return h(
    "li",
    { class: `face${entry.unverified ? " unverified" : ""}` },
    bead(entry),
    h(
      "div",
      null,
      h("a", { class: "words", href: page.link("entry", entry.id) }, entry.content || "(empty)"),
      entry.unverified ? [doubt(entry), " "] : null,
      source === undefined ? said(page, entry, quotes) : source,
      more,
    ),
    when ? h("span", { class: "when" }, time(when)) : null,
  );
}

/** Return a list of memories. Each is an entry, or {entry, quotes, when}. */
export const faces = (page, list) =>
  h(
    "ul",
    { class: "faces" },
    list.map((one) => (one.entry ? face(page, one.entry, one) : face(page, one))),
  );
