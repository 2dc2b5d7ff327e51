// Export and import: download memory as a file; bring such a file in, or one of another program, after a dry run that
// shows what it would change.
import { stream, upload } from "../api.js";
import { h, put } from "../dom.js";
import { badge, command, doing, field, head, notice, number, plural, select, table, time } from "../parts.js";

const OUTCOMES = [
  ["new", "New"],
  ["both", "Both kept"],
  ["known", "Here already"],
  ["left", "Left out"],
];

const WORDS = { named: "pages", points: "telemetry", amendments: "proposals", utterances: "messages" };
const word = (kind) => WORDS[kind] ?? kind.replaceAll("_", " ");

export async function show(page) {
  return [
    head(
      "Export and import",
      "All of your memory is yours to take along: as one file that other programs can read, and that Lukasa brings in again as it was.",
    ),
    h("div", { class: "stack wide" }, exporting(page), importing(page), past(page)),
  ];
}

function exporting(page) {
  const vectors = h("input", { type: "checkbox", name: "vectors" });
  const link = (label, path, first) => {
    const node = h("a", { class: `button${first ? " first" : ""}`, href: path, download: true }, label);
    vectors.addEventListener("change", () => node.setAttribute("href", `${path}${vectors.checked ? "?vectors=true" : ""}`));
    return node;
  };
  return h(
    "section",
    { class: "panel stack" },
    h("h2", null, "Export"),
    h("p", null, "JSON Lines, packed with gzip: every version, the event log, documents and transcripts."),
    notice("warn", "The file holds your sensitive texts as they are. Keep it where only you can read it."),
    h("label", { class: "check" }, vectors, "With vectors (larger; without them they are computed again)"),
    h(
      "div",
      { class: "row" },
      link(`Download workspace ${page.w}`, `/v1/workspaces/${encodeURIComponent(page.w)}/export`, true),
      link("Download all memory", "/v1/export"),
    ),
  );
}

function importing(page) {
  const said = h("div", { class: "stack" });
  const input = h("input", { type: "file", name: "file", accept: ".jsonl,.gz,.zst", required: true });
  const into = select([["", "where it belongs"], ...page.workspaces.map((one) => one.name)], "", { name: "into" });
  const drop = dropping(field("File of an export", input, "Choose one, or drop it here."), input, () => put(said));
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: doing(said, async () => {
        const [file] = input.files;
        put(said, h("p", { class: "loading", role: "status" }, "Verifying every line …"));
        const asked = { into: into.value };
        put(said, plan(page, file, asked, await upload("/v1/import", file, asked)));
      }),
    },
    drop,
    field("Into", into, "A workspace that is not here comes in whole. Others are merged, and nothing is overwritten."),
    h("div", null, h("button", null, "Show what would change")),
  );
  for (const control of [input, into]) control.addEventListener("change", () => put(said));
  return h("section", { class: "panel stack" }, h("h2", null, "Import"), form, said);
}

/** Return a place on which a file can be dropped. */
function dropping(content, input, changed) {
  const place = h(
    "div",
    {
      class: "drop",
      ondragover: (event) => {
        event.preventDefault();
        place.classList.add("over");
      },
      ondragleave: () => place.classList.remove("over"),
      ondrop: (event) => {
        event.preventDefault();
        place.classList.remove("over");
        if (!event.dataTransfer.files.length) return;
        input.files = event.dataTransfer.files;
        changed();
      },
    },
    content,
  );
  return place;
}

const UNDERSTOOD =
  "ChatGPT and Claude.ai (the zip as downloaded), one session of Claude Code or Codex, mem0 (its JSON or history.db), the MCP memory server, LangGraph stores, Letta, Zep and Graphiti episodes, Cursor rules, AGENTS.md, CLAUDE.md, MEMORY.md, Obsidian and basic-memory (a zip of the folder).";

/** What another program remembers: a dry run with counts and samples, then the import, with its progress. */
function past(page) {
  const said = h("div", { class: "stack" });
  const input = h("input", { type: "file", name: "past", required: true });
  input.addEventListener("change", () => put(said));
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: doing(said, async () => {
        const [file] = input.files;
        put(said, h("p", { class: "loading", role: "status" }, "Reading all of it …"));
        const shown = await upload(`${page.api.base}past/file`, file, { name: file.name, dry_run: "true" });
        put(said, brought(page, file, shown));
      }),
    },
    dropping(field("File or zip of another program", input, "Choose one, or drop it here."), input, () => put(said)),
    h("p", { class: "quiet small" }, `Understood: ${UNDERSTOOD} Whole folders, such as all sessions of an agent, come in from a terminal:`),
    command("lukasa import ~/.claude --dry-run"),
    h("div", null, h("button", null, "Show what is in it")),
  );
  return h("section", { class: "panel stack" }, h("h2", null, `Bring your past into ${page.w}`), form, said);
}

const BECAME = { new: "New", known: "Here already", stored: "Stored", held: "Held for review", merged: "Merged", replaced: "Replaced", discarded: "Not kept", refused: "Refused" };

function brought(page, file, shown) {
  const place = h("div", { class: "stack" });
  const said = h("div", { class: "stack" });
  const kinds = [
    ["Memories", shown.memories],
    ["Conversations", shown.conversations],
    ["Messages", shown.messages],
  ];
  const outcomes = Object.keys(BECAME).filter((outcome) => kinds.some(([, of]) => of[outcome]));
  const some = kinds.some(([, of]) => of.new);
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Progress of the import", hidden: true });
  const through = h("p", { class: "quiet", role: "status" });
  return put(
    place,
    h("p", null, h("strong", null, shown.dry_run ? "Nothing has changed yet. " : "Imported. "), `${shown.path} is understood as ${shown.format}.`),
    outcomes.length
      ? table(["What", ...outcomes.map((one) => BECAME[one])], kinds.filter(([, of]) => Object.keys(of).length).map(([what, of]) => [what, ...outcomes.map((one) => number(of[one] ?? 0, 0))]), {
          numeric: outcomes.map((_, at) => at + 1),
          name: "What is in the file",
        })
      : h("p", { class: "quiet" }, "There is nothing to import in it."),
    shown.secrets ? notice("warn", `${plural(shown.secrets, "secret")} in it: a mark stands in the place of each.`) : null,
    shown.skipped.length
      ? h(
          "details",
          null,
          h("summary", null, `${plural(shown.passed_over, "thing")} passed over`),
          h("ul", { class: "list small" }, shown.skipped.map((one) => h("li", null, h("code", null, one.file), ` ${one.reason}`))),
        )
      : null,
    shown.samples.length
      ? h(
          "details",
          { open: shown.dry_run },
          h("summary", null, "Some of it"),
          h("ul", { class: "list small" }, shown.samples.map((one) => h("li", null, badge(one.what), ` ${one.text} `, h("span", { class: "quiet" }, one.file)))),
        )
      : null,
    shown.dry_run && some
      ? h(
          "div",
          { class: "stack" },
          h(
            "div",
            null,
            h(
              "button",
              {
                class: "first",
                onclick: doing(said, async () => {
                  bar.hidden = false;
                  put(said, bar, through);
                  const done = await stream(`${page.api.base}past/file`, file, { name: file.name }, (line) => {
                    if (!line.of) return;
                    bar.max = line.of;
                    bar.value = line.through;
                    put(through, `${number(line.through, 0)} of ${number(line.of, 0)}`);
                  });
                  put(place, brought(page, file, done));
                }),
              },
              "Import it",
            ),
          ),
          said,
        )
      : null,
    shown.dry_run
      ? some
        ? null
        : notice("good", "All of it is here already.")
      : notice(
          "good",
          shown.conversations.new ? "A worker reads the conversations for facts: see Jobs. " : "",
          "A second import of the same file changes nothing.",
        ),
  );
}

function plan(page, file, asked, shown) {
  const place = h("div", { class: "stack" });
  const said = h("div", { class: "stack" });
  const trusts = Object.entries(shown.trusts).map(([name, count]) => `${number(count, 0)} ${name}`);
  return put(
    place,
    h(
      "p",
      null,
      h("strong", null, shown.done ? "Imported. " : "Nothing has changed yet. "),
      `${number(shown.lines, 0)} lines, exported `,
      time(shown.made_at),
      trusts.length ? `; trust of its entries: ${trusts.join(", ")}` : "",
      ".",
    ),
    shown.sensitive ? notice("warn", `${number(shown.sensitive, 0)} entries of the file are sensitive.`) : null,
    shown.stores.map((store) => storeOf(store)),
    shown.done
      ? notice("good", "The event log says what came in, and from which file. Missing vectors are computed by `lukasa embed`.")
      : h(
          "div",
          { class: "stack" },
          h(
            "div",
            null,
            h(
              "button",
              {
                class: "first",
                onclick: doing(said, async () => {
                  const done = await upload("/v1/import", file, { ...asked, confirm: shown.digest });
                  put(place, plan(page, file, asked, done));
                }),
              },
              "Import exactly this",
            ),
          ),
          said,
        ),
  );
}

function storeOf(store) {
  const whole = store.way === "whole";
  const rows = Object.entries(store.counts).map(([kind, of]) => [
    word(kind),
    ...(whole ? [number(of.new ?? 0, 0)] : OUTCOMES.map(([key]) => number(of[key] ?? 0, 0))),
  ]);
  const heads = whole ? ["What", "Rows"] : ["What", ...OUTCOMES.map(([, label]) => label)];
  return h(
    "section",
    { class: "stack tight" },
    h("h3", { class: "row" }, store.name, badge(whole ? "comes in whole" : "is merged", whole ? "good" : "accent")),
    rows.length
      ? table(heads, rows, { numeric: heads.slice(1).map((_, at) => at + 1), name: `What becomes of ${store.name}` })
      : h("p", { class: "quiet" }, "Nothing in it concerns this memory."),
    store.samples.length
      ? h(
          "details",
          { open: store.samples.some((one) => one.outcome === "both") },
          h("summary", null, "Some of it"),
          h(
            "ul",
            { class: "list small" },
            store.samples.map((one) =>
              h(
                "li",
                null,
                badge(OUTCOMES.find(([key]) => key === one.outcome)[1].toLowerCase(), one.outcome === "both" ? "warn" : ""),
                ` ${word(one.kind)}, line ${one.line}: ${one.what}`,
                one.why ? h("span", { class: "quiet" }, ` (${one.why})`) : null,
              ),
            ),
          ),
        )
      : null,
  );
}
