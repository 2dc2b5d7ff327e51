// The frame of the page: sign-in, workspace, navigation. Each view is a module, loaded at its first visit.
import { at, enter, get, leave, resume } from "./api.js";
import { h, put } from "./dom.js";
import { loading, problem, select, toast } from "./parts.js";

const VIEWS = {
  overview: ["Overview", "Memory"],
  browse: ["Browse and search", "Memory"],
  add: ["Add an entry", "Memory"],
  pages: ["Pages", "Memory"],
  library: ["Library", "Memory"],
  conversations: ["Conversations", "Memory"],
  inbox: ["Review inbox", "Use"],
  context: ["Context preview", "Use"],
  jobs: ["Jobs", "System"],
  log: ["Event log", "System"],
  telemetry: ["Telemetry", "System"],
  transfer: ["Export and import", "System"],
  backups: ["Backups", "System"],
  workspace: ["This workspace", "System"],
  scrub: ["Scrub and erase", "System"],
  access: ["Access", "System"],
  entry: ["Entry", ""],
};
const main = document.getElementById("main");
const top = document.getElementById("top");
let workspaces = [];
let shown = 0;
let leaving = [];

addEventListener("hashchange", () => route());
addEventListener("signed-out", () => signedOut("Your session has ended."));
addEventListener("counts", (event) => count({ ...counts, ...event.detail }));
start();

async function start() {
  paintScheme();
  const code = /^#enter=([\w-]+)$/.exec(location.hash)?.[1];
  try {
    if (code) {
      history.replaceState(null, "", location.pathname); // the code works once; keep it out of the browser's history
      await enter(code);
    } else await resume();
    workspaces = (await get("/v1/workspaces")).workspaces;
  } catch (error) {
    if (error.status && error.status < 500) return signedOut(code ? error.message : "");
    return put(main, problem(error));
  }
  document.body.classList.remove("out");
  route();
}

function signedOut(why) {
  document.body.classList.add("out");
  document.title = "Lukasa: signed out";
  put(top);
  put(
    main,
    h(
      "div",
      { class: "panel stack" },
      h("h1", null, "This page needs a link"),
      why ? h("p", { class: "notice warn", role: "alert" }, why) : null,
      h("p", null, "Memory is private. The page opens only with a one-time link from your own terminal."),
      h(
        "ol",
        { class: "stack tight" },
        h(
          "li",
          null,
          "Run ",
          h("code", null, "lukasa serve"),
          "; it prints a link. If you have used that link already, ",
          h("code", null, "lukasa link"),
          " prints another.",
        ),
        h("li", null, "Open the link in this browser. It works once; then a cookie keeps you signed in here."),
      ),
    ),
  );
}

async function route() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  if (path === "main") return skipped();
  const [w = "", view = "overview", ...args] = path.split("/").map(decodeURIComponent);
  const place = workspaces.find((one) => one.name === w) ?? (w ? null : workspaces[0]);
  if (!w && place) return go(place.name, view);
  for (const undo of leaving.splice(0)) undo();
  if (!place || !VIEWS[view]) return lost(w, place);
  const turn = ++shown;
  frame(place.name, view);
  main.setAttribute("aria-busy", "true");
  put(main, loading());
  document.title = `${VIEWS[view][0]} · ${place.name} · Lukasa`;
  const page = {
    w: place.name,
    api: at(place.name),
    args,
    query: new URLSearchParams(search),
    workspaces,
    go: (to, ...more) => go(place.name, to, ...more),
    leaving: (undo) => leaving.push(undo),
    link: (to, ...more) => hash(place.name, to, ...more),
  };
  try {
    const { show } = await import(`./views/${view}.js`);
    const drawn = await show(page);
    if (turn === shown) arrive(drawn);
  } catch (error) {
    if (turn === shown && error.name !== "AbortError") arrive([h("h1", null, VIEWS[view][0]), problem(error)]);
  }
}

/** Move the focus to the content if the browser has not done so; leave it where the user has moved it since. */
function skipped() {
  const at = document.activeElement;
  if (at === document.body || at.classList.contains("skip")) main.focus();
}

/** Mark the view of this address as shown, whole or as a problem. */
function settle() {
  main.removeAttribute("aria-busy");
  main.dataset.shows = location.hash;
}

function arrive(drawn) {
  settle();
  const first =
    document.activeElement === document.body ||
    top.contains(document.activeElement) ||
    main.contains(document.activeElement);
  put(main, drawn);
  scrollTo(0, 0);
  if (first && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
}

function lost(w, place) {
  frame(place?.name ?? workspaces[0]?.name ?? "", "");
  settle();
  put(
    main,
    h(
      "div",
      { class: "empty" },
      h("h1", null, "Not found"),
      h(
        "p",
        null,
        place
          ? "There is no such view."
          : workspaces.length
            ? `There is no workspace “${w}”.`
            : "There is no workspace yet. Create one with: lukasa workspace create NAME",
      ),
      workspaces.length
        ? h("a", { class: "button", href: hash(workspaces[0].name, "overview") }, `Go to ${workspaces[0].name}`)
        : null,
    ),
  );
}

const hash = (...parts) => {
  const query = parts.at(-1) instanceof URLSearchParams ? `?${parts.pop()}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${query}`;
};
function go(...parts) {
  const to = hash(...parts);
  if (location.hash === to) route();
  else location.hash = to;
}

function frame(w, view) {
  const picker = select(
    workspaces.map((one) => one.name),
    w,
    {
      "aria-label": "Workspace",
      onchange: () => go(picker.value, VIEWS[view] && view !== "entry" ? view : "overview"),
    },
  );
  const toggle = h(
    "button",
    {
      class: "menu small",
      "aria-expanded": "false",
      "aria-controls": "fold",
      onclick: () => toggle.setAttribute("aria-expanded", String(top.classList.toggle("open"))),
    },
    "Menu",
  );
  top.classList.remove("open");
  const groups = Map.groupBy(
    Object.entries(VIEWS).filter(([, [, group]]) => group),
    ([, [, group]]) => group,
  );
  put(
    top,
    h(
      "div",
      { class: "bar" },
      h("a", { class: "brand", href: hash(w, "overview") }, h("img", { src: "/assets/icon.svg", alt: "" }), "Lukasa"),
      toggle,
    ),
    h(
      "div",
      { class: "fold", id: "fold" },
      picker,
      h(
        "nav",
        { class: "main", "aria-label": "Views" },
        [...groups].map(([group, views]) =>
          h(
            "div",
            null,
            h("div", { class: "group", id: `g-${group}` }, group),
            h(
              "ul",
              { "aria-labelledby": `g-${group}` },
              views.map(([name, [title]]) =>
                h(
                  "li",
                  null,
                  h(
                    "a",
                    { href: hash(w, name), "aria-current": name === view ? "page" : null },
                    title,
                    name === "inbox" ? h("span", { class: "count", id: "waiting", hidden: true }) : null,
                  ),
                ),
              ),
            ),
          ),
        ),
      ),
      h("div", { class: "foot" }, schemes(), h("button", { class: "small", onclick: out }, "Sign out")),
    ),
  );
  count(counts);
  if (counts.of !== w && w) wait(w);
}

/** Show the number of items in the inbox. Views with a newer number send it as an event. */
async function wait(w) {
  count({ waiting: 0, of: w });
  try {
    const seen = await at(w).get("overview");
    if (counts.of === w) count({ waiting: seen.held + seen.proposals + seen.rivals + seen.submissions, of: w });
  } catch {
    return; // the view itself shows the error
  }
}

let counts = { waiting: 0, of: "" };
function count(known) {
  counts = known;
  const node = document.getElementById("waiting");
  if (!node) return;
  node.hidden = !known.waiting;
  put(node, known.waiting, h("span", { class: "away" }, " waiting"));
}

async function out() {
  try {
    await leave();
  } catch (error) {
    if (error.status !== 401) return toast(error.message);
  }
  signedOut("You have signed out.");
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

function paintScheme() {
  document.documentElement.dataset.scheme = localStorage.getItem("scheme") ?? "";
}
