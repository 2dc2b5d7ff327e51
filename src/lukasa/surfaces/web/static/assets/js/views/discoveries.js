// Discoveries in the library: pages, repositories and feeds. Their texts are strangers' and become text nodes.
import { h, put } from "../dom.js";
import { badge, doing, field, later, notice, number, time, toast } from "../parts.js";

const LATEST = 5;

/** A form that discovers what a URL names, its result, and what was discovered last; `followed` shows feeds anew. */
export function discovering(page, followed) {
  const said = h("div", { class: "stack" });
  const url = h("input", { name: "url", type: "url", placeholder: "https://example.org/caches", required: true });
  const context = h("input", { name: "context", placeholder: "why our read cache goes stale" });
  const follow = h("input", { name: "follow", type: "checkbox" });
  const list = later(
    () => page.api.get("discoveries", { limit: LATEST }),
    ({ discoveries }) =>
      discoveries.length
        ? h(
            "ul",
            { class: "list" },
            discoveries.map((one) => h("li", { class: "card" }, brief(page, one))),
          )
        : h("p", { class: "quiet" }, "Nothing was discovered yet."),
  );
  return h(
    "section",
    { class: "panel stack" },
    h("h2", null, "Discover"),
    h("p", { class: "small quiet" }, "The server fetches the page or repository, and keeps a note about it in the collection discoveries."),
    h(
      "form",
      {
        class: "stack",
        onsubmit: doing(said, async () => {
          put(said, notice("", "Fetching …"));
          const made = await page.api.post("discoveries", {
            url: url.value.trim(),
            context: context.value.trim(),
            follow: follow.checked,
          });
          put(said, result(page, made, follow.checked));
          list.again();
          if (made.followed) followed();
        }),
      },
      field("Page or repository", url),
      field("A word of context", context, "what it is for; it counts for the relevance"),
      h("label", { class: "row" }, follow, "Follow its feed"),
      h("div", null, h("button", null, "Discover")),
    ),
    said,
    list,
  );
}

function result(page, made, follow) {
  const { discovery, relevance } = made;
  const feed = made.followed
    ? `Its feed is followed: ${made.feeds[0].url}`
    : follow
      ? "The page names no feed."
      : made.feeds.length
        ? `It has a feed: ${made.feeds.map((one) => one.url).join(", ")}`
        : "";
  return notice(
    "good",
    h("p", null, h("a", { href: page.link("library", discovery.document) }, discovery.title), `: ${made.outcome}, version ${discovery.version}`),
    h("p", { class: "content" }, discovery.note),
    relevance ? h("p", { class: "small" }, `Relevance ${number(relevance.score)}: ${shares(relevance)}`) : null,
    relevance?.words.length ? h("p", { class: "small" }, `Remembered: ${relevance.words.join(", ")}`) : null,
    discovery.notes.map((note) => h("p", { class: "small" }, note)),
    feed ? h("p", { class: "small wrap" }, feed) : null,
  );
}

const percent = (share) => `${Math.round(100 * share)} %`;

function shares(relevance) {
  const memory = `${percent(relevance.memory_share)} of its main words are remembered`;
  return relevance.context_share == null ? memory : `it has ${percent(relevance.context_share)} of the words of the context; ${memory}`;
}

const brief = (page, one) => [
  h("a", { class: "title", href: page.link("library", one.document) }, one.title),
  h(
    "div",
    { class: "meta" },
    badge(one.kind),
    one.context ? h("span", null, one.context) : null,
    h("span", null, `relevance ${number(one.relevance)}`),
    badge(one.standing),
    h("span", null, "read ", time(one.read_at)),
  ),
];

/** A form that follows a feed; `again` shows what is followed anew. */
export function feeding(page, said, again) {
  const url = h("input", { name: "feed", type: "url", placeholder: "https://example.org/feed.xml", required: true });
  return h(
    "form",
    {
      class: "row low",
      onsubmit: doing(said, async () => {
        await page.api.post("feeds", { url: url.value.trim() });
        toast("Followed from now on.");
        url.value = "";
        again();
      }),
    },
    h("div", { class: "grow" }, field("A feed", url)),
    h("button", null, "Follow feed"),
  );
}
