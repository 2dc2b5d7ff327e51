// The timeline: what was believed on a day, what became of it, and what changed before it.
import { diff } from "../diff.js";
import { h, put, svg } from "../dom.js";
import { face, sayer } from "../faces.js";
import { day, iso } from "../board.js";
import { empty, field, head, later, number, panel, plural } from "../parts.js";

const DAY = 86400000;
const BECAME = { changed: "reads differently today", superseded: "replaced since", forgotten: "forgotten since", invalidated: "no longer holds", archived: "archived since", pruned: "pruned since", stale: "stale today" };
const DID = { changed: "changed", replaced: "replaced", retired: "no longer believed" };

export async function show(page) {
  const today = iso(Date.now());
  const first = await page.api.get("timeline", { limit: 1 });
  if (!first.days.length)
    return [
      head("Timeline"),
      empty("No days yet", "When agents learn something, you can go back here to any day and see what was believed then."),
    ];
  const begun = first.days[0].day;
  const days = Math.max(1, Math.round((new Date(today) - new Date(begun)) / DAY));
  const start = page.query.get("at") ?? today;
  const slider = h("input", { type: "range", min: 0, max: days, value: Math.round((new Date(start) - new Date(begun)) / DAY), "aria-label": "As of" });
  const exact = h("input", { type: "date", min: begun, max: today, value: start });
  const place = h("div");
  let turn = 0;
  const draw = () => {
    const to = exact.value || today;
    const mine = ++turn;
    slider.setAttribute("aria-valuetext", day(to));
    history.replaceState(null, "", to === today ? page.link("timeline") : page.link("timeline", new URLSearchParams({ at: to })));
    document.getElementById("main").dataset.shows = location.hash;
    const at = to === today ? undefined : `${to}T23:59:59Z`;
    const part = later(() => page.api.get("timeline", { at, limit: 25 }), (seen) => (mine === turn ? seenThen(page, seen, to, today) : null));
    put(place, part);
    mark(bars, to);
  };
  slider.addEventListener("input", () => {
    exact.value = iso(new Date(begun).getTime() + Number(slider.value) * DAY);
    mark(bars, exact.value);
    slider.setAttribute("aria-valuetext", day(exact.value));
  });
  slider.addEventListener("change", draw);
  exact.addEventListener("change", () => {
    slider.value = Math.round((new Date(exact.value) - new Date(begun)) / DAY);
    draw();
  });
  const bars = histogram(first.days, begun, days);
  draw();
  return [
    head("Timeline", "Go back to any day: what was believed then, what became of it, and why."),
    h(
      "div",
      { class: "stack wide" },
      h(
        "div",
        { class: "panel when-bar" },
        bars,
        h("div", { class: "slider" }, h("span", null, day(begun)), slider, h("span", null, "today")),
        h("div", { class: "row low" }, field("Day", exact), h("p", { class: "small quiet grow" }, "Bars above the line: learned. Below it: changed or no longer believed.")),
      ),
      place,
    ),
  ];
}

function histogram(days, begun, span) {
  const most = Math.max(1, ...days.map((one) => Math.max(one.learned, one.changed + one.retired)));
  const step = 1000 / (span + 1);
  const bar = (one, count, up) => {
    const tall = count ? Math.max(2, ((up ? 66 : 22) * count) / most) : 0;
    const x = ((new Date(one.day) - new Date(begun)) / DAY) * step;
    return tall ? svg("rect", { x: (x + step * 0.12).toFixed(1), y: up ? (72 - tall).toFixed(1) : 74, width: Math.max(1.5, step * 0.76).toFixed(1), height: tall.toFixed(1), class: up ? "up" : "down", "data-day": one.day }) : null;
  };
  return svg(
    "svg",
    { class: "histogram", viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": `Changes on ${plural(days.length, "day")}` },
    svg("line", { x1: 0, x2: 1000, y1: 73, y2: 73 }),
    days.map((one) => [bar(one, one.learned, true), bar(one, one.changed + one.retired, false)]),
  );
}

function mark(bars, to) {
  for (const one of bars.querySelectorAll("rect")) one.classList.toggle("past", one.dataset.day > to);
}

function seenThen(page, seen, to, today) {
  const when = to === today ? "today" : `on ${day(to)}`;
  return h(
    "div",
    { class: "half" },
    panel(
      `Believed ${when}`,
      { more: h("span", { class: "quiet" }, plural(seen.total, "memory")) },
      seen.believed.length
        ? h("ul", { class: "faces" }, seen.believed.map((one) => believed(page, one)))
        : h("p", { class: "quiet" }, "Nothing was believed yet."),
      seen.total > seen.believed.length ? h("p", { class: "small quiet" }, `The newest ${number(seen.believed.length, 0)} of ${number(seen.total, 0)}.`) : null,
    ),
    panel(
      to === today ? "What changed lately" : "What changed in the two weeks before",
      {},
      seen.changes.length
        ? h("ol", { class: "changes" }, seen.changes.map((one) => change(page, one)))
        : h("p", { class: "quiet" }, "Nothing changed."),
    ),
  );
}

function believed(page, one) {
  const became = one.since_then
    ? h("span", { class: "said became" }, BECAME[one.since_then] ?? one.since_then, one.now ? [": ", h("q", null, one.now)] : null, one.cause ? ` (${one.cause})` : null)
    : null;
  return face(page, one.entry, { when: one.entry.created_at, more: became });
}

function change(page, one) {
  const link = h("a", { class: "words", href: page.link("entry", one.entry.id) }, one.entry.content);
  return h(
    "li",
    { class: `change ${one.did}` },
    h("span", { class: "when" }, day(one.at.slice(0, 10))),
    h(
      "div",
      null,
      one.did === "learned" ? null : [h("span", { class: "did" }, DID[one.did] ?? one.did), " "],
      one.did === "changed" ? diff(one.before, one.entry.content) : one.did === "learned" ? link : h("del", null, link),
      one.replaced_by ? h("span", { class: "said" }, "now: ", one.replaced_by) : null,
      h("span", { class: "said" }, one.did === "learned" ? sayer(one.entry) : one.by, one.cause ? `: ${one.cause}` : ""),
    ),
  );
}
