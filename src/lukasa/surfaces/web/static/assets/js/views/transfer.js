// Export and import: download memory as a file; bring such a file in, after a dry run that shows what it would change.
import { upload } from "../api.js";
import { h, put } from "../dom.js";
import { badge, doing, field, head, notice, number, select, table, time } from "../parts.js";

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
    h("div", { class: "stack wide" }, exporting(page), importing(page)),
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
  const drop = h(
    "div",
    { class: "drop", ondragover: hold, ondragleave: () => drop.classList.remove("over"), ondrop: dropped },
    field("File of an export", input, "Choose one, or drop it here."),
  );
  function hold(event) {
    event.preventDefault();
    drop.classList.add("over");
  }
  function dropped(event) {
    event.preventDefault();
    drop.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    put(said);
  }
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
