// Pages: the author's named entries, in markdown, with a preview and their history.
import { diff } from "../diff.js";
import { h, prose, put } from "../dom.js";
import { post, seg } from "../api.js";
import { ask, doing, empty, field, head, later, problem, select, table, time, toast } from "../parts.js";
import { tiersOf } from "../places.js";

export async function show(page) {
  return page.args[0] ? one(page, page.args[0]) : all(page);
}

async function all(page) {
  const [{ named }, tiers] = await Promise.all([page.api.get("named"), tiersOf(page)]);
  const homes = tiers.filter((tier) => !(tier.needs ?? []).length).map((tier) => tier.name);
  return [
    head(
      "Pages",
      "Guidance in your own words, such as how to write. Agents always get the whole pages, and cannot change them.",
      h("button", { onclick: () => create(page, homes) }, "New page"),
    ),
    named.length
      ? h(
          "ul",
          { class: "list" },
          named.map((entry) =>
            h(
              "li",
              { class: "card" },
              h("a", { class: "title", href: page.link("pages", entry.name) }, entry.name),
              h(
                "p",
                { class: "small quiet wrap" },
                entry.body.trim()
                  ? `${entry.body.trim().slice(0, 160)}${entry.body.trim().length > 160 ? "…" : ""}`
                  : "Empty: agents get nothing of it yet.",
              ),
              h(
                "div",
                { class: "meta" },
                h("span", null, `${entry.tier} tier`),
                h("span", null, `version ${entry.version}`),
                h("span", null, "edited ", time(entry.edited_at)),
                h("span", null, `by ${entry.editor}`),
              ),
            ),
          ),
        )
      : empty(
          "No pages yet",
          "A page is markdown text that every agent gets at the start of its work.",
          h("button", { onclick: () => create(page, homes) }, "New page"),
        ),
  ];
}

async function create(page, tiers) {
  await ask("New page", (close) => {
    const name = h("input", { name: "name", required: true, placeholder: "STYLE" });
    const tier = select(tiers, "workspace", { name: "tier" });
    const said = h("div");
    return h(
      "form",
      {
        onsubmit: doing(said, async () => {
          await page.api.put(
            `named/${seg(name.value.trim())}`,
            { body: `# ${name.value.trim()}\n`, tier: tier.value },
            0,
          );
          close();
          page.go("pages", name.value.trim());
        }),
      },
      field("Name", name),
      field("Tier", tier),
      said,
      h(
        "div",
        { class: "row end" },
        h("button", { type: "button", onclick: () => close() }, "Cancel"),
        h("button", { class: "first" }, "Create"),
      ),
    );
  });
}

async function one(page, name) {
  const entry = await page.api.get(`named/${seg(name)}`);
  const text = h("textarea", { class: "code", name: "body", spellcheck: "true", value: entry.body });
  const preview = h("div", { class: "panel", "aria-live": "polite" });
  const said = h("div", { class: "stack" });
  const state = { version: entry.version, saved: entry.body };
  let timer;
  const render = async () => {
    const wanted = text.value;
    const drawn = await post("/v1/markdown", { text: wanted }).then(
      ({ html }) => (wanted.trim() ? prose(html) : h("p", { class: "quiet" }, "Nothing to show yet.")),
      problem,
    );
    if (wanted === text.value) put(preview, drawn); // ignore the answer about an older text
  };
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(render, 250);
  });
  const warn = (event) => {
    if (text.value !== state.saved) event.preventDefault();
  };
  addEventListener("beforeunload", warn);
  page.leaving(() => {
    clearTimeout(timer);
    removeEventListener("beforeunload", warn);
  });
  render();
  const history = later(
    () => page.api.get(`named/${seg(name)}/history`),
    ({ named }) =>
      versions(named, (body) => {
        text.value = body;
        render();
        text.focus();
      }),
  );
  const save = async () => {
    try {
      const made = await page.api.put(`named/${seg(name)}`, { body: text.value }, state.version);
      Object.assign(state, { version: made.version, saved: made.body });
      toast(`Saved as version ${made.version}.`);
      history.again();
    } catch (error) {
      if (error.status !== 412) throw error;
      const theirs = await page.api.get(`named/${seg(name)}`);
      state.version = theirs.version;
      put(
        said,
        problem(error),
        h("h2", null, `From the current text (version ${theirs.version}) to yours`),
        diff(theirs.body, text.value),
        h(
          "div",
          { class: "row" },
          h(
            "button",
            {
              onclick: () => {
                text.value = theirs.body;
                state.saved = theirs.body;
                put(said);
                render();
              },
            },
            "Take theirs",
          ),
          h("p", { class: "small quiet" }, "Saving again replaces it with yours."),
        ),
      );
    }
  };
  text.addEventListener("keydown", (event) => {
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  const form = h(
    "form",
    { class: "field", onsubmit: doing(said, save) },
    field("Markdown", text),
    h(
      "div",
      { class: "row" },
      h("button", { class: "first" }, "Save"),
      h("span", { class: "small quiet" }, h("kbd", null, "Ctrl"), " ", h("kbd", null, "S"), " saves too"),
    ),
  );
  return [
    h("p", { class: "crumb" }, h("a", { href: page.link("pages") }, "Pages"), ` / ${name}`),
    head(name, `${entry.tier} tier, edited by ${entry.editor}.`),
    h(
      "div",
      { class: "stack wide" },
      said,
      h(
        "div",
        { class: "half" },
        form,
        h("section", { class: "field", "aria-label": "Preview" }, h("h2", { class: "label" }, "Preview"), preview),
      ),
      h("section", { class: "panel" }, h("h2", null, "History"), history),
    ),
  ];
}

function versions(named, take) {
  const shown = h("div", { class: "stack tight" });
  const pick = (i) =>
    put(
      shown,
      h("h3", null, `Changes of version ${named[i].version}`),
      diff(named[i - 1]?.body ?? "", named[i].body),
      h(
        "div",
        null,
        h("button", { class: "small", onclick: () => take(named[i].body) }, "Put this text into the editor"),
      ),
    );
  return [
    table(
      ["Version", "Who", "When", ""],
      named
        .map((one, i) => [
          one.version,
          one.editor,
          time(one.edited_at),
          h(
            "button",
            { class: "small", onclick: () => pick(i) },
            "Show",
            h("span", { class: "away" }, ` version ${one.version}`),
          ),
        ])
        .reverse(),
      { name: "Versions" },
    ),
    shown,
  ];
}
