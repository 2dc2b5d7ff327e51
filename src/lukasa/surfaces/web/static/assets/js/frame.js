// What is around every view: the bar with the search field and the workspaces, and the navigation.
import { at, leave, post } from "./api.js";
import { h, put } from "./dom.js";
import { findField } from "./find.js";
import { ask, doing, dropdown, field, select, time, toast } from "./parts.js";
import { explain } from "./terms.js";
import { GROUPS, VIEWS, family, tabs } from "./views.js";

const bar = document.getElementById("bar");
const side = document.getElementById("side");
let counts = { waiting: 0, of: "" };

/** Return the address of a view: address("main", "entry", id), with a query as the last part if there is one. */
export const address = (...parts) => {
  const query = parts.at(-1) instanceof URLSearchParams ? `?${parts.pop()}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${query}`;
};

addEventListener("counts", (event) => count({ ...counts, ...event.detail }));

/** Draw the bar and the navigation. `world` has `workspaces`, `go`, `renew` and `out`. */
export function frame(world, w, view) {
  const menu = h(
    "button",
    {
      class: "only-phone",
      "aria-expanded": "false",
      "aria-controls": "side",
      onclick: () => menu.setAttribute("aria-expanded", String(side.classList.toggle("open"))),
    },
    "Menu",
  );
  side.classList.remove("open");
  put(
    bar,
    menu,
    brand(w, "only-phone"),
    w ? findField(w, world.go) : null,
    switcher(world, w),
    w
      ? h("a", { class: "button first", href: address(w, "add"), "aria-label": "Remember" }, h("span", { class: "wide" }, "Remember"), h("span", { class: "narrow" }, "+"))
      : null,
  );
  put(
    side,
    brand(w),
    w ? GROUPS.map((name, group) => section(name, group, w, view)) : null,
    h(
      "div",
      { class: "foot" },
      h("button", { class: "small plain", onclick: explain }, "Words used here"),
      schemes(),
      h("button", { class: "small", onclick: world.out }, "Sign out"),
    ),
  );
  count(counts);
  if (counts.of !== w && w) wait(w);
}

const brand = (w, name = "") =>
  h(
    "a",
    { class: `brand ${name}`, href: w ? address(w, "home") : "#/" },
    h("img", { src: "/assets/icon.svg", alt: "" }),
    "Lukasa",
  );

function section(name, group, w, view) {
  const views = Object.entries(VIEWS).filter(([, one]) => one[1] === group);
  return h(
    "div",
    null,
    h("div", { class: "group", id: `g-${group}` }, name),
    h(
      "ul",
      { "aria-labelledby": `g-${group}` },
      views.map(([to, [title]]) =>
        h(
          "li",
          null,
          h(
            "a",
            { href: address(w, to), "aria-current": to === family(view) ? "page" : null },
            title,
            to === "inbox" ? h("span", { class: "count", id: "waiting", hidden: true }) : null,
          ),
        ),
      ),
    ),
  );
}

/** Return the tabs above a view that shares its place in the navigation with others. */
export function tabBar(w, view) {
  const known = tabs(view);
  if (!known.length) return null;
  return h(
    "nav",
    { class: "tabs", "aria-label": VIEWS[family(view)][0] },
    known.map(([name, title]) =>
      h("a", { href: address(w, name), "aria-current": name === view ? "page" : null }, title),
    ),
  );
}

// Workspaces

function switcher(world, w) {
  return dropdown(h("span", { class: "cut" }, w || "Workspaces"), { "aria-label": `Workspace ${w}`, title: w }, async (close) => {
    await world.renew();
    return [
      world.workspaces().map((one) =>
        h(
          "a",
          { href: address(one.name, "home"), onclick: close, "aria-current": one.name === w ? "true" : null },
          one.name,
          h("span", { class: "small" }, one.written_at ? ["written ", time(one.written_at)] : "nothing yet"),
        ),
      ),
      world.workspaces().length ? h("hr") : null,
      h("button", { onclick: () => (close(), createWorkspace(world)) }, "New workspace …"),
    ];
  });
}

/** Ask for a name, create the workspace and go there. */
export async function createWorkspace(world) {
  const made = await ask("New workspace", (close) => {
    const name = h("input", { required: true, autocomplete: "off", spellcheck: "false", placeholder: "payments-api" });
    const said = h("div");
    const create = async () => close((await post("/v1/workspaces", { name: name.value.trim() }, { repeatable: false })).name);
    return h(
      "form",
      { onsubmit: doing(said, create) },
      field("Name", name, "A workspace is the memory of one project. Others do not see it; what you keep everywhere, all see."),
      said,
      h(
        "div",
        { class: "row end" },
        h("button", { type: "button", onclick: () => close() }, "Cancel"),
        h("button", { class: "first" }, "Create"),
      ),
    );
  });
  if (!made) return;
  await world.renew();
  world.go(made, "home");
  toast(`Workspace ${made} is there.`);
}

// Counts, session, colours

/** Show the number of items that wait. Views with a newer number send it as an event. */
async function wait(w) {
  count({ waiting: 0, of: w });
  try {
    const seen = await at(w).get("overview");
    if (counts.of === w) count({ waiting: seen.held + seen.proposals + seen.rivals + seen.submissions, of: w });
  } catch {
    return; // the view itself shows the error
  }
}

function count(known) {
  counts = known;
  const node = document.getElementById("waiting");
  if (!node) return;
  node.hidden = !known.waiting;
  put(node, known.waiting, h("span", { class: "away" }, " waiting"));
}

/** End the session; say so if the server does not answer. */
export async function out() {
  try {
    await leave();
  } catch (error) {
    if (error.status !== 401) return toast(error.message);
  }
  dispatchEvent(new CustomEvent("signed-out", { detail: "You have signed out." }));
}

function schemes() {
  const control = select(
    [
      ["", "System colours"],
      ["light", "Light"],
      ["dark", "Dark"],
    ],
    localStorage.getItem("scheme") ?? "",
    {
      "aria-label": "Colour scheme",
      onchange: () => {
        localStorage.setItem("scheme", control.value);
        paintScheme();
      },
    },
  );
  return control;
}

export function paintScheme() {
  document.documentElement.dataset.scheme = localStorage.getItem("scheme") ?? "";
}
