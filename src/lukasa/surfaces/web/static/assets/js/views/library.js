// Library: documents to look things up in. Their texts are strangers' and become text nodes, never markup.
import { h, put } from "../dom.js";
import { card } from "../entries.js";
import { split } from "../editing.js";
import { badge, confirm, doing, empty, facts, field, head, later, notice, number, select, table, time, toast } from "../parts.js";
import { discovering, feeding } from "./discoveries.js";

const MOST = 5_500_000; // bytes of a file that fits into one request
const LIMIT = 50;
const HITS = 8;

export async function show(page) {
  return page.args[0] ? one(page, page.args[0]) : all(page);
}

async function all(page) {
  const collection = page.query.get("collection") ?? "";
  const found = await page.api.get("corpus/documents", { collection, after: page.query.get("after"), limit: LIMIT });
  const names = Object.keys(found.collections);
  const q = page.query.get("q")?.trim();
  const followed = following(page);
  return [
    head(
      "Library",
      "Documents to look things up in. They are searched apart from memory; agents may search and read them, and only you add them.",
    ),
    h(
      "div",
      { class: "stack wide" },
      names.length ? searching(page, names, collection) : null,
      q ? hits(page, q, collection) : null,
      h(
        "div",
        { class: "two" },
        h("section", { class: "stack" }, h("h2", null, "Documents"), listing(page, found, names)),
        h("div", { class: "stack wide" }, adding(page, names), discovering(page, followed.again), followed.section),
      ),
    ),
  ];
}

function searching(page, names, collection) {
  const words = h("input", {
    type: "search",
    name: "q",
    value: page.query.get("q") ?? "",
    placeholder: "What do you want to look up?",
  });
  const among = select([["", "all collections"], ...names], collection, { name: "collection" });
  return h(
    "form",
    {
      class: "panel",
      role: "search",
      onsubmit: (event) => {
        event.preventDefault();
        const query = new URLSearchParams();
        if (words.value.trim()) query.set("q", words.value.trim());
        if (among.value) query.set("collection", among.value);
        page.go("library", query);
      },
    },
    h(
      "div",
      { class: "row low" },
      h("div", { class: "grow" }, field("Look up", words)),
      field("Collection", among),
      h("button", { class: "first" }, "Look up"),
    ),
    page.query.size ? h("div", null, h("a", { href: page.link("library"), class: "small" }, "Clear all")) : null,
  );
}

function hits(page, query, collection) {
  const body = { query, limit: HITS, collections: collection ? [collection] : [] };
  return h(
    "section",
    { class: "stack" },
    h("h2", null, "Passages"),
    later(
      () => page.api.post("corpus/search", body, { repeatable: false }),
      ({ hits }) =>
        hits.length
          ? h(
              "ul",
              { class: "list" },
              hits.map((hit) => h("li", { class: "card" }, passage(page, hit))),
            )
          : empty("Nothing found", "No passage has these words. Try others, or fewer."),
    ),
  );
}

function passage(page, hit) {
  const there = page.link("library", hit.document, new URLSearchParams({ passage: hit.number }));
  return [
    h("a", { class: "title", href: there }, hit.title),
    h("p", { class: "content" }, hit.text),
    h("div", { class: "meta" }, h("span", null, rest(hit.place, hit.title) || "the beginning"), worth(hit)),
  ];
}

/** Return a place without the title that most places begin with. */
const rest = (place, title) => (place.startsWith(title) ? place.slice(title.length).replace(/^( › |, )/, "") : place);

const worth = (one) => [
  h("span", null, one.document ?? one.id),
  h("span", null, `version ${one.version}`),
  h("span", null, one.collection),
  h("span", null, `origin ${one.origin}`),
  badge(one.lifecycle, one.lifecycle === "current" ? "good" : ""),
  h("span", null, `weight ${number(one.weight)}`),
  badge(one.standing, one.standing === "canonical" ? "accent" : ""),
];

function listing(page, found, names) {
  if (!names.length)
    return empty("No documents yet", "Add a file here, or a folder on your machine with: lukasa corpus add PATH");
  const next = new URLSearchParams(page.query);
  if (found.next) next.set("after", found.next);
  return [
    h(
      "p",
      { class: "small quiet" },
      names.map((name) => `${number(found.collections[name])} in ${name}`).join(", "),
    ),
    found.documents.length
      ? h(
          "ul",
          { class: "list" },
          found.documents.map((document) =>
            h(
              "li",
              { class: "card" },
              h("a", { class: "title", href: page.link("library", document.id) }, document.title),
              h("div", { class: "meta" }, worth(document), h("span", null, "read ", time(document.updated_at))),
            ),
          ),
        )
      : h("p", { class: "quiet" }, "No document is here."),
    found.next ? h("div", null, h("a", { class: "button", href: page.link("library", next) }, "More documents")) : null,
  ];
}

// Adding

function adding(page, names) {
  const said = h("div", { class: "stack" });
  const known = h(
    "datalist",
    { id: "collections" },
    names.map((name) => h("option", { value: name })),
  );
  const collection = h("input", { name: "collection", list: "collections", placeholder: "documents" });
  const tags = h("input", { name: "tags", placeholder: "handbook" });
  const standing = h("input", { name: "standing", placeholder: "reference" });
  const shelf = () => ({
    ...(collection.value.trim() ? { collection: collection.value.trim() } : {}),
    ...(standing.value.trim() ? { standing: standing.value.trim() } : {}),
    ...(split(tags.value).length ? { tags: split(tags.value) } : {}),
  });
  const take = (files) => doing(said, () => sent(page, files, shelf(), said))({ currentTarget: drop });
  const file = h("input", {
    type: "file",
    name: "file",
    multiple: true,
    onchange: async () => {
      await take([...file.files]);
      file.value = "";
    },
  });
  const drop = h(
    "div",
    {
      class: "drop",
      ondragover: (event) => {
        event.preventDefault();
        drop.classList.add("over");
      },
      ondragleave: () => drop.classList.remove("over"),
      ondrop: (event) => {
        event.preventDefault();
        drop.classList.remove("over");
        take([...event.dataTransfer.files]);
      },
    },
    field("Files", file, "or drop them here: markdown, text, HTML, PDF, EPUB, source code, up to 5 MB each"),
  );
  const location = h("input", { name: "location", placeholder: "/home/ada/handbook" });
  const here = h(
    "form",
    {
      class: "row low",
      onsubmit: doing(said, async () => {
        if (!location.value.trim()) return;
        put(said, notice("", "Reading …"));
        const done = await page.api.post("corpus/documents", { location: location.value.trim(), ...shelf() });
        put(said, outcome(page, done));
      }),
    },
    h("div", { class: "grow" }, field("A file or folder on this machine", location)),
    h("button", null, "Add"),
  );
  return h(
    "section",
    { class: "panel stack" },
    h("h2", null, "Add documents"),
    drop,
    here,
    h(
      "details",
      null,
      h("summary", null, "What they are"),
      h(
        "div",
        { class: "filters" },
        field("Collection", collection),
        field("Standing", standing, "what they are worth"),
        field("Tags", tags, "separated by commas"),
      ),
      known,
    ),
    said,
  );
}

/** Send files one after the other, and tell of each what became of it. */
async function sent(page, files, shelf, said) {
  const told = h("div", { class: "stack" });
  put(said, told);
  for (const file of files) {
    const waits = notice("", `Reading ${file.name} …`);
    told.append(waits);
    try {
      if (file.size > MOST) throw new Error(`${file.name} is too large to send. Name its path on this machine instead.`);
      const data = await encoded(file);
      const done = await page.api.post("corpus/documents", { name: file.name, data, media_type: file.type, ...shelf });
      waits.replaceWith(outcome(page, done));
    } catch (error) {
      waits.replaceWith(notice("bad", h("p", { class: "strong" }, error.message), error.fix ? h("p", null, error.fix) : null));
    }
  }
}

const encoded = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });

function outcome(page, done) {
  const failed = done.files.filter((one) => one.outcome === "failed");
  const counts = Object.entries(done.counts).map(([name, count]) => `${number(count)} ${name}`);
  const only = done.files.length === 1 && !failed.length ? done.files[0] : null;
  return notice(
    failed.length ? "bad" : "good",
    h(
      "p",
      null,
      only ? h("a", { href: page.link("library", only.document) }, only.document) : null,
      only ? `: ${only.outcome}, version ${only.version}` : counts.join(", ") || "There is nothing to add.",
    ),
    only?.notes.map((note) => h("p", { class: "small" }, note)),
    failed.slice(0, 10).map((one) => h("p", { class: "small wrap" }, `${one.location}: ${one.error}. ${one.fix}`)),
  );
}

// Folders that the worker follows

function following(page) {
  const said = h("div", { class: "stack" });
  const folder = h("input", { name: "folder", placeholder: "/home/ada/notes", required: true });
  const list = later(
    () => page.api.get("corpus/watches"),
    ({ watches }) =>
      watches.length
        ? h(
            "ul",
            { class: "list" },
            watches.map((watch) => followed(page, watch, list, said)),
          )
        : h("p", { class: "quiet" }, "Nothing is followed. The worker looks at a followed folder every 5 minutes, and asks a feed every hour."),
  );
  const section = h(
    "section",
    { class: "panel stack" },
    h("h2", null, "Followed"),
    list,
    h(
      "form",
      {
        class: "row low",
        onsubmit: doing(said, async () => {
          await page.api.post("corpus/watches", { folder: folder.value.trim() });
          toast("Followed from now on.");
          page.go("library");
        }),
      },
      h("div", { class: "grow" }, field("A folder on this machine", folder)),
      h("button", null, "Follow"),
    ),
    feeding(page, said, () => list.again()),
    said,
  );
  return { section, again: () => list.again() };
}

function followed(page, watch, list, said) {
  const end = doing(said, async () => {
    await page.api.drop(`corpus/watches/${encodeURIComponent(watch.id)}`);
    toast("No longer followed. Its documents stay.");
    list.again();
  });
  return h(
    "li",
    { class: "card" },
    h("div", { class: "row between" }, h("span", { class: "wrap" }, watch.location), h("button", { class: "small", onclick: end }, "Stop")),
    h(
      "div",
      { class: "meta" },
      badge(watch.kind),
      h("span", null, watch.collection),
      h("span", null, "looked at ", time(watch.checked_at)),
      watch.failures ? badge(`failed ${watch.failures} times`, "bad") : null,
    ),
    watch.error ? h("p", { class: "small wrap" }, watch.error) : null,
  );
}

// One document

async function one(page, id) {
  const about = await page.api.get("corpus/about", { document: id });
  const { head: document, source } = about;
  const at = page.query.get("passage");
  const said = h("div", { class: "stack" });
  const remove = doing(said, async () => {
    const sure = await confirm("Remove it?", "Entries that rest on it then show that it is gone.", "Remove", "danger");
    if (!sure) return;
    await page.api.drop(`corpus/documents?${new URLSearchParams({ document: id })}`);
    toast("Removed.");
    page.go("library");
  });
  return [
    h("p", { class: "crumb" }, h("a", { href: page.link("library") }, "Library"), ` / ${document.id}`),
    head(document.title, null, h("button", { onclick: remove }, "Remove")),
    said,
    h(
      "div",
      { class: "two" },
      h(
        "section",
        { class: "stack" },
        h("h2", null, "Text"),
        at !== null
          ? h("p", { class: "small" }, `Passage ${at}, with those around it. `, h("a", { href: page.link("library", id) }, "From the beginning"))
          : null,
        reading(page, id, at),
      ),
      h(
        "div",
        { class: "stack wide" },
        h(
          "section",
          { class: "panel" },
          h("h2", null, "About"),
          facts({
            collection: document.collection,
            origin: document.origin,
            lifecycle: document.lifecycle,
            weight: number(document.weight),
            standing: document.standing,
            passages: number(about.passages),
            "read from": source && h("span", { class: "wrap" }, source.location),
            format: source?.media_type,
            read: time(document.updated_at),
          }),
          source?.notes.map((note) => h("p", { class: "small" }, note)),
        ),
        h(
          "section",
          { class: "panel" },
          h("h2", null, "Versions"),
          table(
            ["version", "title", "read"],
            about.versions.toReversed().map((one) => [one.version, one.removed ? "removed" : one.title, time(one.updated_at)]),
            { name: "Versions", numeric: [0] },
          ),
        ),
        h(
          "section",
          { class: "stack" },
          h("h2", null, "Entries that rest on it"),
          about.entries.length
            ? h(
                "ul",
                { class: "list" },
                about.entries.map((entry) => card(page, entry)),
              )
            : h("p", { class: "quiet" }, "No entry links to this document."),
        ),
      ),
    ),
  ];
}

/** The text of a document, a stretch at a time. */
function reading(page, id, passage) {
  const place = h("div", { class: "stack" });
  const add = (where) =>
    later(
      () => page.api.get("corpus/text", { document: id, limit: 8000, ...where }),
      (found) => [
        found.place ? h("p", { class: "small quiet" }, found.place) : null,
        h("div", { class: "panel content text" }, found.text),
        found.next != null
          ? h(
              "div",
              null,
              h(
                "button",
                {
                  onclick: (event) => {
                    event.currentTarget.remove();
                    place.append(add({ start: found.next }));
                  },
                },
                "Read on",
              ),
            )
          : null,
      ],
    );
  place.append(add(passage !== null ? { passage, around: 2 } : {}));
  return place;
}
