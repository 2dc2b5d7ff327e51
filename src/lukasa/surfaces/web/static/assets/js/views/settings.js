// Settings: the models and a trial of each, what this workspace's memory does, its topics, and where memory is.
import { get, post } from "../api.js";
import { h, put } from "../dom.js";
import { ask, command, doing, facts, field, head, number, panel, time, toast } from "../parts.js";

const EXAMPLES = {
  chat: ["auto", "openai:gpt-4o-mini", "anthropic:claude-sonnet-4-5", "local", "command:claude", "command:ollama:llama3.2", "none"],
  embedder: ["auto", "none"],
};

export async function show(page) {
  const [models, spec, { channels }] = await Promise.all([get("/v1/settings"), page.api.get("spec"), page.api.get("channels")]);
  return [
    head("Settings", "Models are set where the server starts; here you see what is in use, and try another before you set it."),
    h(
      "div",
      { class: "stack wide" },
      h(
        "div",
        { class: "half" },
        model("chat", "Language model", models.chat_setting, models.chat, "LUKASA_CHAT", {
          on: "It does the background work: it observes sessions, reflects, and judges proposals.",
          off: "Without one, rules do the background work, and nothing is sent anywhere.",
        }),
        model("embedder", "Search by meaning", models.embedder_setting, models.embedder, "LUKASA_EMBEDDER", {
          on: "It runs on this machine, and finds memories that say the same in other words.",
          off: "Without it, memories are found by their words alone.",
        }),
      ),
      h(
        "div",
        { class: "half" },
        topics(page, channels),
        panel(
          "Where memory is",
          {},
          facts({
            [models.database ? "database" : "folder"]: h("code", null, models.database || models.data),
            "tokens a day": models.tokens_a_day == null ? "no limit" : `at most ${number(models.tokens_a_day, 0)} for background work`,
            "cost a day": models.cost_a_day == null ? "no limit" : `at most ${models.cost_a_day} for background work`,
            "this workspace": page.w,
          }),
          h("div", { class: "row" }, h("a", { class: "button small", href: page.link("transfer") }, "Export or back up"), h("a", { class: "button small", href: page.link("access") }, "Agents and access")),
        ),
      ),
      said(spec),
    ),
  ];
}

// Models

function model(what, title, setting, now, variable, words) {
  const input = h("input", { value: setting, list: `settings-${what}`, autocomplete: "off", spellcheck: "false" });
  const answer = h("div", { "aria-live": "polite" });
  const trying = doing(answer, async () => {
    put(answer, h("p", { class: "quiet", role: "status" }, "Asking …"));
    const given = input.value.trim();
    put(answer, came(await post("/v1/settings/try", { what, setting: given && given !== setting ? given : null }), given !== setting ? `export ${variable}=${given}` : ""));
  });
  return panel(
    title,
    {},
    h("p", null, h("b", null, now.works ? now.name : "None"), now.works ? ` is in use. ${words.on}` : ` is in use: ${now.reason}. ${words.off}`, now.host ? ` It sends to ${now.host}.` : ""),
    now.works || !now.fix ? null : h("p", { class: "small quiet" }, `To change that: ${now.fix}.`),
    h(
      "form",
      { class: "stack tight", onsubmit: trying },
      field(
        "Setting",
        input,
        what === "chat" ? "Keys stay in the environment; this page never asks for them, and never shows them. A trial sends one short question." : "A trial embeds three sentences on this machine.",
      ),
      h("datalist", { id: `settings-${what}` }, EXAMPLES[what].map((one) => h("option", { value: one }))),
      h("div", null, h("button", { class: "first" }, "Try it")),
    ),
    answer,
  );
}

function came(tried, keep) {
  if (!tried.works) return h("div", { class: "notice warn" }, h("p", { class: "strong" }, `${tried.name || "It"} does not work: ${tried.reason}`), tried.fix ? h("p", null, tried.fix) : null);
  return h(
    "div",
    { class: "notice good" },
    h("p", { class: "strong" }, `${tried.name} works: ${number(tried.took_ms, 0)} ms${tried.host ? `, at ${tried.host}` : ", on this machine"}.`),
    tried.said ? h("blockquote", null, tried.said) : null,
    keep ? [h("p", { class: "small" }, "To keep it, set this where the server starts, and start it again:"), command(keep)] : null,
  );
}

// Topics

function topics(page, channels) {
  const create = async () => {
    const made = await ask("New topic", (close) => {
      const [name, about] = [h("input", { required: true, autocomplete: "off" }), h("input", { autocomplete: "off" })];
      const said = h("div");
      const go = async () => close(await page.api.post("channels", { name: name.value.trim(), description: about.value.trim() }));
      return h(
        "form",
        { onsubmit: doing(said, go) },
        field("Name", name, "A topic (a channel) is shared by several conversations: releases, hiring, the kitchen."),
        field("About", about),
        said,
        h("div", { class: "row end" }, h("button", { type: "button", onclick: () => close() }, "Cancel"), h("button", { class: "first" }, "Create")),
      );
    });
    if (!made) return;
    toast(`Topic ${made.name} is there.`);
    page.go("settings");
  };
  return panel(
    "Topics",
    { more: h("button", { class: "small", onclick: create }, "New topic …") },
    h(
      "ul",
      { class: "list" },
      channels.map((one) =>
        h("li", { class: "row between" }, h("span", null, h("b", null, one.name), one.description ? ` ${one.description}` : "", one.is_default ? h("span", { class: "quiet" }, " (where a conversation goes that names none)") : null), h("span", { class: "small quiet" }, time(one.created_at))),
      ),
    ),
  );
}

// The spec

function said(spec) {
  return panel(
    `What this memory does: ${spec.title || spec.name}`,
    {},
    h("p", { class: "lead" }, spec.about),
    h(
      "div",
      { class: "grid spec" },
      spec.tiers.map((tier) =>
        h("section", { class: "card" }, h("h3", null, tier.name), h("p", { class: "small quiet" }, tier.about), h("ul", { class: "small plainlist" }, tier.sentences.map((one) => h("li", null, one)))),
      ),
    ),
    h("ul", { class: "small plainlist" }, spec.sentences.map((one) => h("li", null, one))),
    h("p", { class: "small quiet" }, "Every value, with its reason: ", h("code", null, "lukasa workspace show --spec"), ". How to change it: docs/how-to/choose-or-write-a-spec.md."),
  );
}
