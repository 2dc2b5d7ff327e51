// People and things: who and what memories name together, as a map; and the memories of the one that is chosen.
import { h, put, svg } from "../dom.js";
import { faces } from "../faces.js";
import { placed } from "../layout.js";
import { empty, head, later, number, plural } from "../parts.js";

const ALL = 1000; // names in the list

export async function show(page) {
  const kind = page.query.get("kind") ?? "";
  const [whole, listed] = await Promise.all([
    page.api.get("names", { kind, limit: innerWidth < 700 ? 24 : 56 }),
    page.api.get("names", { kind, limit: ALL }),
  ]);
  const count = whole.people + whole.things;
  const title = head(
    "People and things",
    count
      ? [
          h("b", null, plural(whole.people, "person", "people")),
          " and ",
          h("b", null, plural(whole.things, "thing")),
          ` in ${plural(whole.entries, "memory")}. Names are guessed from how texts are written; nobody has confirmed them.`,
          whole.cut ? " Older memories were not looked at." : "",
        ]
      : null,
    count ? kinds(page, kind) : null,
  );
  if (!count)
    return [
      title,
      empty(
        "Nobody and nothing yet",
        "Once memories name people, places, programs or documents, you see here who and what belongs together.",
        h("a", { class: "button first", href: page.link("add") }, "Remember something"),
      ),
    ];
  const world = { page, kind, whole, listed, chosen: "", around: null };
  const stage = h("div", { class: "map board" });
  const beside = h("div", { class: "stack wide" });
  world.choose = (name, around = null) => {
    world.chosen = name;
    world.around = around;
    const query = new URLSearchParams({ ...(kind ? { kind } : {}), ...(name ? { name } : {}) });
    history.replaceState(null, "", page.link("people", query));
    draw(world, stage, beside);
  };
  const first = page.query.get("name");
  const found = first ? find(listed.names, first) : null;
  world.chosen = found?.name ?? "";
  world.around = found && !find(whole.names, found.name) ? await near(page, kind, found.name) : null;
  let width = 0;
  const watch = new ResizeObserver(([seen]) => {
    if (Math.abs(seen.contentRect.width - width) < 8) return;
    width = seen.contentRect.width;
    drawMap(world, stage);
  });
  watch.observe(stage);
  page.leaving(() => watch.disconnect());
  draw(world, stage, beside);
  return [title, h("div", { class: "two people" }, stage, beside)];
}

const kinds = (page, kind) =>
  h(
    "div",
    { class: "switch", role: "group", "aria-label": "Show" },
    [
      ["", "Both"],
      ["person", "People"],
      ["thing", "Things"],
    ].map(([value, title]) =>
      h("a", { href: page.link("people", new URLSearchParams(value ? { kind: value } : {})), "aria-current": value === kind ? "true" : null }, title),
    ),
  );

const same = (one, name) => one.name === name || one.key === name.toLowerCase() || one.forms.includes(name);
const find = (names, name) => names.find((one) => same(one, name));
const near = (page, kind, name) => page.api.get("names", { kind, near: name, limit: innerWidth < 700 ? 18 : 40 });

function draw(world, stage, beside) {
  drawMap(world, stage);
  put(beside, world.chosen ? about(world) : null, list(world));
}

// The map. It is for the eye and the pointer; the list beside it says the same to keyboards and screen readers.

function drawMap(world, stage) {
  const shown = world.around ?? world.whole;
  const wide = Math.round(Math.min(1100, Math.max(320, stage.clientWidth || 700)));
  const tall = wide < 560 ? 460 : Math.round(Math.min(660, wide * 0.78));
  const spots = placed(shown.names, shown.links, wide, tall);
  const at = new Map(spots.map((spot) => [spot.key, spot]));
  const chosen = shown.names.find((one) => one.name === world.chosen)?.key;
  const beside = new Set([chosen]);
  for (const link of shown.links) {
    if (link.one === chosen) beside.add(link.other);
    if (link.other === chosen) beside.add(link.one);
  }
  const most = Math.max(1, ...shown.links.map((link) => link.entries));
  const lines = shown.links.map((link) => {
    const [a, b] = [at.get(link.one), at.get(link.other)];
    const lit = chosen && (link.one === chosen || link.other === chosen);
    return svg(
      "line",
      { x1: a.x, y1: a.y, x2: b.x, y2: b.y, class: lit ? "lit" : chosen ? "dim" : null, "stroke-width": (0.6 + (2.6 * link.entries) / most).toFixed(1) },
    );
  });
  const nodes = spots.map((spot) =>
    svg(
      "g",
      {
        class: ["node", spot.kind, spot.key === chosen ? "chosen" : "", chosen && !beside.has(spot.key) ? "dim" : ""].join(" ").trim(),
        transform: `translate(${spot.x} ${spot.y})`,
        onclick: () => world.choose(spot.key === chosen ? "" : spot.name, world.around),
      },
      svg("title", null, `${spot.name}: ${plural(spot.entries, "memory")}`),
      spot.kind === "person"
        ? svg("circle", { r: spot.r })
        : svg("rect", { x: -spot.r, y: -spot.r, width: spot.r * 2, height: spot.r * 2, rx: spot.r * 0.35 }),
      svg("text", { y: spot.r + spot.size, "text-anchor": "middle", "font-size": spot.size }, spot.label),
    ),
  );
  const rest = world.around ? 0 : (world.kind === "person" ? shown.people : world.kind === "thing" ? shown.things : shown.people + shown.things) - shown.names.length;
  put(
    stage,
    h(
      "div",
      { class: "legend" },
      h("span", null, h("i", { class: "dot" }), "person"),
      h("span", null, h("i", { class: "dot square" }), "thing"),
      h("span", { class: "grow" }, world.around ? `around ${world.around.names[0]?.name ?? ""}` : "larger: more memories; a line: named together"),
      world.around ? h("button", { class: "small", onclick: () => world.choose("", null) }, "Whole map") : null,
    ),
    svg("svg", { viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, "aria-hidden": "true", focusable: "false" }, lines, nodes),
    rest > 0 ? h("p", { class: "legend" }, `${number(rest, 0)} more that fewer memories name are in the list.`) : null,
  );
}

// The one that is chosen

function about(world) {
  const { page, chosen } = world;
  const one = find(world.listed.names, chosen) ?? find(world.whole.names, chosen);
  if (!one) return null;
  const others = one.forms.filter((form) => form !== one.name);
  return h(
    "section",
    { class: "panel", "aria-live": "polite" },
    h(
      "header",
      null,
      h("h2", null, one.name),
      h("a", { href: page.link("browse", new URLSearchParams({ name: one.name })) }, `all ${plural(one.entries, "memory")}`),
    ),
    others.length ? h("p", { class: "small quiet" }, `also ${others.slice(0, 4).join(", ")}`) : null,
    later(
      () => near(page, "", one.name),
      (found) => {
        const links = new Map(found.links.filter((link) => link.one === one.key || link.other === one.key).map((link) => [link.one === one.key ? link.other : link.one, link.entries]));
        const named = found.names.slice(1, 13);
        return named.length
          ? h(
              "ul",
              { class: "chips", "aria-label": `Named together with ${one.name}` },
              named.map((other) =>
                h(
                  "li",
                  null,
                  h("button", { class: "chip", onclick: () => go(world, other.name) }, other.name, h("span", null, links.get(other.key) ?? "")),
                ),
              ),
            )
          : h("p", { class: "small quiet" }, "Named together with nobody and nothing else.");
      },
    ),
    later(
      () => page.api.post("table", { name: one.name, sort: "relevance", limit: 6 }),
      ({ rows }) => faces(page, rows.map((row) => row.entry)),
    ),
    h(
      "div",
      { class: "row" },
      h("button", { class: "small", onclick: async () => world.choose(one.name, await near(page, world.kind, one.name)) }, "Map around it"),
      h("button", { class: "small", onclick: () => world.choose("", world.around) }, "Let go"),
    ),
  );
}

async function go(world, name) {
  const shown = world.around ?? world.whole;
  world.choose(name, find(shown.names, name) ? world.around : await near(world.page, world.kind, name));
}

// The list

function list(world) {
  const rows = h("ul", { class: "names" });
  const words = h("input", { type: "search", "aria-label": "Filter names", placeholder: "Filter names …", autocomplete: "off" });
  const fill = () => {
    const wanted = words.value.trim().toLowerCase();
    const some = world.listed.names.filter((one) => !wanted || one.forms.some((form) => form.toLowerCase().includes(wanted)));
    put(
      rows,
      some.slice(0, wanted ? 100 : 40).map((one) =>
        h(
          "li",
          null,
          h(
            "button",
            { "aria-pressed": String(one.name === world.chosen), onclick: () => go(world, one.name) },
            h("i", { class: one.kind === "person" ? "dot" : "dot square", "aria-hidden": "true" }),
            h("span", { class: "grow" }, one.name),
            h("span", { class: "num quiet" }, number(one.entries, 0), h("span", { class: "away" }, ` ${one.entries === 1 ? "memory" : "memories"}, a ${one.kind}`)),
          ),
        ),
      ),
      some.length > 40 && !wanted ? h("li", { class: "small quiet" }, `and ${number(some.length - 40, 0)} more: type to filter`) : null,
      some.length ? null : h("li", { class: "small quiet" }, "No name like that."),
    );
  };
  words.addEventListener("input", fill);
  fill();
  return h("section", { class: "panel" }, h("h2", null, "All names"), words, rows);
}
