// The page: sign-in, the workspaces, and the view of an address. Each view is a module, loaded at its first visit.
import { at, enter, get, resume } from "./api.js";
import { h, put } from "./dom.js";
import { address, createWorkspace, frame, out, paintScheme, tabBar } from "./frame.js";
import { loading, problem } from "./parts.js";
import { VIEWS, title } from "./views.js";

const main = document.getElementById("main");
const frames = ["bar", "side"].map((id) => document.getElementById(id));
let workspaces = [];
let shown = 0;
let leaving = [];
const world = { workspaces: () => workspaces, renew, go, out };

addEventListener("hashchange", () => route());
addEventListener("signed-out", (event) => signedOut(event.detail || "Your session has ended."));
start();

async function start() {
  paintScheme();
  const code = /^#enter=([\w-]+)$/.exec(location.hash)?.[1];
  try {
    if (code) {
      history.replaceState(null, "", location.pathname); // the code works once; keep it out of the browser's history
      await enter(code);
    } else await resume();
    await renew();
  } catch (error) {
    if (error.status && error.status < 500) return signedOut(code ? error.message : "");
    return put(main, problem(error));
  }
  document.body.classList.remove("out");
  route();
}

/** Ask for the workspaces again: an agent or a terminal may have made one since. */
async function renew() {
  workspaces = (await get("/v1/workspaces", { times: true })).workspaces;
}

/** Return the workspace to open without a name: the one that this browser showed last, or else was written last. */
function usual() {
  const last = workspaces.find((one) => one.name === localStorage.getItem("workspace"));
  const written = [...workspaces].sort((a, b) => (b.written_at ?? "").localeCompare(a.written_at ?? ""));
  return last ?? written[0] ?? null;
}

function signedOut(why) {
  document.body.classList.add("out");
  document.title = "Lukasa: signed out";
  for (const one of frames) put(one);
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
  const [w = "", view = "home", ...args] = path.split("/").map(decodeURIComponent);
  if (w && !workspaces.some((one) => one.name === w)) await renew().catch(() => {});
  const place = workspaces.find((one) => one.name === w) ?? (w ? null : usual());
  if (!w && place) return location.replace(address(place.name, view));
  for (const undo of leaving.splice(0)) undo();
  if (!place || !VIEWS[view]) return lost(w, place);
  localStorage.setItem("workspace", place.name);
  const turn = ++shown;
  frame(world, place.name, view);
  main.setAttribute("aria-busy", "true");
  put(main, loading());
  document.title = `${title(view)} · ${place.name} · Lukasa`;
  const page = {
    w: place.name,
    api: at(place.name),
    args,
    query: new URLSearchParams(search),
    workspaces,
    go: (to, ...more) => go(place.name, to, ...more),
    leaving: (undo) => leaving.push(undo),
    link: (to, ...more) => address(place.name, to, ...more),
  };
  const around = (drawn) => [tabBar(place.name, view), drawn];
  try {
    const { show } = await import(`./views/${view}.js`);
    const drawn = await show(page);
    if (turn === shown) arrive(around(drawn));
  } catch (error) {
    if (turn === shown && error.name !== "AbortError") arrive(around([h("h1", null, title(view)), problem(error)]));
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
    frames.some((one) => one.contains(document.activeElement)) ||
    main.contains(document.activeElement);
  put(main, drawn);
  scrollTo(0, 0);
  if (first && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
}

function lost(w, place) {
  const other = place ?? usual();
  frame(world, other?.name ?? "", "");
  settle();
  if (!workspaces.length) return put(main, first());
  put(
    main,
    h(
      "div",
      { class: "empty" },
      h("h1", null, "Not found"),
      h("p", null, place ? "There is no such view." : `There is no workspace “${w}”.`),
      h("a", { class: "button first", href: address(other.name, "home") }, `Go to ${other.name}`),
    ),
  );
}

/** Return what somebody sees who has no workspace yet. */
const first = () =>
  h(
    "div",
    { class: "empty" },
    h("h1", null, "A memory for your agents"),
    h("p", null, "A workspace is the memory of one project. Make the first one; agents find it by the folder they work in."),
    h("button", { class: "first", onclick: () => createWorkspace(world) }, "Create a workspace"),
  );

function go(...parts) {
  const to = address(...parts);
  if (location.hash === to) route();
  else location.hash = to;
}
