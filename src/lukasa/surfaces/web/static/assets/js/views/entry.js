// One entry: its text, relevance, origin, history, and the actions on it.
import { h, put } from "../dom.js";
import { edit } from "../editing.js";
import { doubt, factors, look, meta, quotes, wordsOf } from "../entries.js";
import { past } from "../history.js";
import { badge, chart, confirm, copyId, doing, facts, field, head, later, number, table, time, toast } from "../parts.js";
import { panel, submitting } from "../submissions.js";

const HISTORY = new Set(["forgotten", "superseded", "archived", "invalidated", "pruned"]);

export async function show(page) {
  const id = page.args[0] ?? "";
  const [standing, { versions, confirmations, rivals }, { grounds }, { shown }] = await Promise.all([
    page.api.get(`entries/${id}/standing`),
    page.api.get(`entries/${id}/history`),
    page.api.get(`entries/${id}`),
    page.api.get("shown", { item: id, limit: 1000 }),
  ]);
  const entry = { ...standing.entry, grounds };
  const said = h("div");
  return [
    h("p", { class: "crumb" }, h("a", { href: page.link("browse") }, "All entries")),
    head("Entry", null, actions(page, entry, versions, said)),
    said,
    h(
      "div",
      { class: "stack wide" },
      h(
        "section",
        { class: look(entry, "panel"), "aria-label": "Text" },
        h("p", { class: "content" }, entry.content || "(empty)"),
        meta(entry),
        waiting(entry),
      ),
      h(
        "div",
        { class: "two" },
        h("div", { class: "stack wide" }, relevance(page, standing), others(page, confirmations, rivals), past(page, versions)),
        h("div", { class: "stack wide" }, provenance(page, entry), why(page, entry), shownTo(id, shown), panel(page, { memory: id }, "Submitted to the corpus")),
      ),
    ),
  ];
}

// The disclosure ledger: which agents got this entry, how often, and for how many tokens.
function shownTo(id, shown) {
  const byAgent = new Map();
  for (const one of shown) {
    const cost = one.items.filter((item) => item.id === id).reduce((sum, item) => sum + item.tokens, 0);
    const seen = byAgent.get(one.principal) ?? { times: 0, tokens: 0, last: one };
    byAgent.set(one.principal, { times: seen.times + 1, tokens: seen.tokens + cost, last: seen.last });
  }
  const rows = [...byAgent].map(([name, { times, tokens, last }]) => [
    name,
    times,
    tokens,
    h("span", null, time(last.at), ` · ${last.surface}`, last.ref ? ` · ${last.ref}` : ""),
  ]);
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Shown to"),
    rows.length
      ? table(["Agent", "Times", "Tokens", "Last"], rows, { numeric: [1, 2], name: "Shown to" })
      : h("p", { class: "small quiet" }, "No agent got it, as far as the ledger goes back."),
  );
}

const RELATIONS = {
  update: "gives the same thing another value",
  close: "concerns the same thing",
  same: "says the same",
  both: "holds too",
};

function others(page, confirmations, rivals) {
  if (!confirmations.length && !rivals.length) return null;
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Said about the same thing"),
    h(
      "ul",
      { class: "list small" },
      confirmations.map((one) =>
        h("li", null, h("span", { class: "strong" }, one.outcome === "failed" ? "not confirmed" : "stated again"), ` by ${one.speaker}, `, time(one.at), `: ${one.said}`),
      ),
      rivals.map((one) =>
        h(
          "li",
          null,
          one.entry.unverified ? [doubt(one.entry), " "] : null,
          h("a", { href: page.link("entry", one.entry.id) }, one.entry.content),
          h("span", { class: "quiet" }, ` · ${RELATIONS[one.relation]} · `, time(one.entry.confirmed_at)),
          badge(one.entry.state),
        ),
      ),
    ),
  );
}

function waiting(entry) {
  return [
    entry.unverified
      ? h(
          "p",
          { class: "notice bad" },
          `Unverified: ${entry.origin.principal} put it through ${entry.origin.surface}, and nobody vouches for who wrote it. Agents may quote it, and may not act on it.`,
        )
      : null,
    standstill(entry),
  ];
}

function standstill(entry) {
  if (entry.state === "held")
    return h(
      "p",
      { class: "notice warn" },
      `Held: ${entry.gate?.reason || "it waits for your decision"}. Agents do not get it until you accept it.`,
    );
  if (entry.sensitive)
    return h("p", { class: "notice" }, "Sensitive: it holds a secret. Contexts, agents and exports leave it out.");
  if (entry.state !== "active" && entry.transition)
    return h("p", { class: "notice" }, `${entry.state}: ${entry.transition.cause}, by ${entry.transition.actor}.`);
  return null;
}

function actions(page, entry, versions, said) {
  const act = (path, body, words) =>
    doing(said, async () => {
      await page.api.post(path, body);
      toast(words);
      page.go("entry", entry.id);
    });
  const forget = doing(said, async () => {
    if (
      !(await confirm(
        "Forget this entry?",
        "Agents no longer get it. Its text and history stay, and you can restore it.",
        "Forget",
        "danger",
      ))
    )
      return;
    await page.api.drop(`entries/${entry.id}`);
    toast("Forgotten.", {
      label: "Undo",
      run: () =>
        page.api.post(`entries/${entry.id}/restore`).then(
          () => page.go("entry", entry.id),
          (error) => toast(error.message),
        ),
    });
    page.go("entry", entry.id);
  });
  return [
    entry.state === "held"
      ? h("button", { class: "first", onclick: act(`review/${entry.id}/approve`, {}, "Accepted.") }, "Accept")
      : null,
    HISTORY.has(entry.state)
      ? h("button", { class: "first", onclick: act(`entries/${entry.id}/restore`, {}, "Restored.") }, "Restore")
      : h("button", { onclick: () => edit(page, entry) }, "Edit"),
    entry.state === "active" || entry.state === "stale"
      ? h("button", { onclick: doing(said, () => submitting(page, entry)) }, "Submit to a document")
      : null,
    versions.length > 1
      ? h("button", { onclick: act(`entries/${entry.id}/undo`, {}, "The last change is undone.") }, "Undo last change")
      : null,
    HISTORY.has(entry.state) ? null : h("button", { class: "danger", onclick: forget }, "Forget"),
  ];
}

function relevance(page, { entry, access, decay, frequency, relevance, awaits_disposition }) {
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Relevance now"),
    factors([
      ["importance", entry.importance],
      "×",
      ["decay", decay],
      "×",
      ["use", frequency],
      "=",
      ["relevance", relevance],
    ]),
    awaits_disposition
      ? h("p", { class: "notice warn" }, "Its relevance is so low that you must promote, exempt or archive it.")
      : null,
    h(
      "p",
      { class: "small quiet" },
      access
        ? ["Read ", access.count, access.count === 1 ? " time, most recently " : " times, most recently ", time(access.at), "."]
        : "Never read.",
      " Stated ",
      entry.merged_count,
      entry.merged_count === 1 ? " time" : " times",
      ", most recently ",
      time(entry.confirmed_at),
      ".",
    ),
    chart(
      () => page.api.chart("decay", { entry: entry.id }),
      "Solid: since its last use. Dashed: the future if nobody reads it.",
    ),
  );
}

// The present state of a document, as its link shows it.
function axes(source) {
  if (!source) return "";
  const told = [source.origin, source.lifecycle, source.weight != null && `weight ${source.weight}`, source.standing];
  const state = badge(source.status, source.status === "current" ? "" : "warn");
  return [" ", state, ` ${told.filter(Boolean).join(", ")}`];
}

function provenance(page, entry) {
  const link = (id) => wordsOf(page, id);
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Origin"),
    facts({
      "written by": `${entry.origin.principal} through ${entry.origin.surface} (${entry.origin.transport})`,
      curator: entry.curator,
      source: entry.source,
      trust: entry.trust,
      authority: authority(entry.authority),
      tier: Object.entries(entry.scope)
        .filter(([k, v]) => v && !["account", "workspace"].includes(k))
        .map(([k, v]) => (k === "tier" ? v : `${k} ${v}`))
        .join(", "),
      owner: entry.owner,
      lifetime: entry.lifetime.replace("_", " "),
      category: entry.category && `${entry.category.name} (${number(entry.category.confidence * 100, 0)} %)`,
      gate: entry.gate && [entry.gate.verdict, entry.gate.reason].filter(Boolean).join(": "),
      created: time(entry.created_at),
      changed: time(entry.updated_at),
      "valid from": entry.valid_at && time(entry.valid_at),
      "valid until": entry.invalid_at && time(entry.invalid_at),
      "replaced by": entry.superseded_by && link(entry.superseded_by),
      "derived from": entry.derived_from.length ? entry.derived_from.map((id) => h("div", null, link(id))) : "",
      documents: entry.links.length
        ? entry.links.map((one, n) =>
            h(
              "div",
              null,
              `${one.source}, version ${one.version}${one.locator ? `, ${one.locator}` : ""}`,
              axes(entry.grounds?.provenance[n]),
            ),
          )
        : "",
      withdrawn: entry.grounds?.withdrawn.length
        ? entry.grounds.withdrawn.map((one) => h("div", null, badge("withdrawn", "warn"), " ", link(one.source), ` ${one.reason}`))
        : "",
      "failed checks": entry.grounds?.failures || "",
      kept: entry.grounds && `${entry.grounds.retention}: ${entry.grounds.because}`,
      file: entry.path,
      metadata: Object.keys(entry.metadata).length ? h("code", null, JSON.stringify(entry.metadata)) : "",
      id: copyId(entry.id),
      version: entry.version,
    }),
    entry.evidence.length
      ? later(
          () => page.api.get(`entries/${entry.id}/evidence`),
          (found) => [h("h3", null, "Quotes"), quotes(found.quotes)],
        )
      : null,
  );
}

const authority = (value) =>
  ({
    act: "act: an agent may act on it",
    inform: "inform: an agent may weigh it, not act on it alone",
    none: "none: shown as unverified",
  })[value] ?? value;

function why(page, entry) {
  const query = h("input", { name: "query", required: true, placeholder: "A question" });
  const answer = h("div", { class: "stack tight" });
  const keys = Object.fromEntries(
    Object.entries(entry.scope).filter(([k, v]) => v && ["channel", "conversation"].includes(k)),
  );
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Does a question find it?"),
    h(
      "form",
      {
        class: "stack tight",
        onsubmit: doing(answer, async () => {
          const { steps } = await page.api.post(`entries/${entry.id}/why`, { query: query.value, ...keys });
          put(
            answer,
            h(
              "ol",
              { class: "list small" },
              steps.map((one) =>
                h("li", null, h("span", { class: "strong" }, one.step), " ", badge(one.outcome, ""), ` ${one.reason}`),
              ),
            ),
          );
        }),
      },
      field("Ask", query),
      h("div", null, h("button", null, "Explain")),
    ),
    answer,
  );
}
