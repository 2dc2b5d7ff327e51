// The board: every memory a bead near what it belongs to, and a slider that shows any day.
import { h, put, svg } from "./dom.js";
import { holds, tone } from "./faces.js";
import { number, plural } from "./parts.js";

const WIDE = 760;
const HIGH = 420;
const LEGEND = { account: "everywhere", workspace: "project", channel: "topic", conversation: "one talk" };
const DAY = 86400000;
const MANY = 300; // beads, from which on topics show their counts
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Draw the board that the server laid out. `at` is the day to begin with; `onday(day)` hears where the slider stands. */
export function board(page, laid, { at = null, onday = null } = {}) {
  const narrow = innerWidth < 640;
  const size = narrow ? [HIGH, WIDE] : [WIDE, HIGH];
  const place = narrow ? (x, y) => [y, x] : (x, y) => [x, y];
  const readout = h("p", { class: "readout" });
  const beads = laid.id.map((id, n) => bead(laid, n, place));
  const spots = laid.spots.map((spot, n) => label(laid, spot, n, place, narrow));
  const plane = svg("g", null, svg("g", { class: "beads", "aria-hidden": "true" }, beads), spots);
  const picture = svg(
    "svg",
    { class: "beads-of", viewBox: `0 0 ${size[0]} ${size[1]}`, role: "group", "aria-label": `${plural(laid.id.length, "memory")} in ${plural(laid.spots.length, "topic")}` },
    plane,
  );
  const back = h("button", { class: "small back", hidden: true, onclick: () => zoom(null) }, "All topics");
  let shown = null;
  const zoom = (n) => {
    shown = n;
    back.hidden = n === null;
    spots.forEach((spot, other) => spot.classList.toggle("off", n !== null && other !== n));
    move(plane, n === null ? [0, 0, 1] : closer(laid.spots[n], place, size));
    picture.classList.toggle("zoomed", n !== null);
    tell(null);
    if (n !== null) back.focus();
  };
  const tell = (n) => {
    if (n === null) return put(readout, shown === null ? slider.told() : topicTold(laid, laid.spots[shown]));
    put(
      readout,
      h("i", { class: `bead ${tone(laid.tier[n])}` }),
      h("span", { class: "words" }, laid.words[n]),
      h("span", { class: "small" }, `${holds(laid.tier[n], page.w)} · ${day(laid.since[n])}${laid.until[n] ? ` – ${day(laid.until[n])}` : ""}${laid.act[n] ? " · agents may act on it" : ""}`),
    );
  };
  const slider = sliding(laid, beads, at, (to) => (tell(null), onday?.(to)));
  const which = (event) => event.target.dataset?.n;
  picture.addEventListener("pointerover", (event) => which(event) && tell(Number(which(event))));
  picture.addEventListener("pointerout", (event) => which(event) && tell(null));
  picture.addEventListener("click", (event) => {
    const spot = event.target.closest?.("[data-spot]");
    if (which(event)) page.go("entry", laid.id[Number(which(event))]);
    else if (spot) zoom(Number(spot.dataset.spot));
    else if (shown !== null) zoom(null);
  });
  picture.addEventListener("keydown", (event) => {
    const spot = event.target.closest("[data-spot]");
    if (event.key === "Escape" && shown !== null) zoom(null);
    else if (spot && (event.key === "Enter" || event.key === " ")) zoom(Number(spot.dataset.spot));
    else return;
    event.preventDefault();
  });
  tell(null);
  return h(
    "figure",
    { class: "board" },
    h("figcaption", null, h("span", null, "Every bead is a memory, near what it belongs to"), legend(laid)),
    h("div", { class: "wood" }, picture, back),
    readout,
    slider.row,
    asList(page, laid),
  );
}

function bead(laid, n, place) {
  const [x, y] = place(laid.x[n], laid.y[n]);
  const r = laid.apart * (0.22 + 0.27 * Math.min(1, laid.size[n] / 0.8));
  return svg("circle", {
    cx: x,
    cy: y,
    r: r.toFixed(2),
    class: `${tone(laid.tier[n])}${laid.act[n] ? " act" : ""}`,
    "fill-opacity": (0.35 + 0.65 * laid.left[n]).toFixed(2),
    "stroke-width": (laid.apart * 0.11).toFixed(2),
    "data-n": n,
  });
}

function label(laid, spot, n, place, narrow) {
  const [x, y] = place(spot.x, spot.y);
  const count = laid.id.length > MANY ? ` ${number(spot.count, 0)}` : "";
  return svg(
    "g",
    { class: "spot", role: "button", tabindex: "0", "data-spot": n, "aria-label": `${spot.label || "other"}, ${plural(spot.count, "memory")}: look closer` },
    svg("text", { x, y: (y - spot.radius - 5).toFixed(1), "text-anchor": "middle", "font-size": narrow ? 17 : 14 }, spot.label || "other", count ? svg("tspan", { class: "soft" }, count) : null),
  );
}

const closer = (spot, place, [wide, high]) => {
  const [x, y] = place(spot.x, spot.y);
  const scale = Math.min(14, (Math.min(wide, high) * 0.44) / (spot.radius + 6));
  return [wide / 2 - x * scale, high / 2 + 8 - y * scale, scale];
};

/** Move the plane to a place and scale: at once if the system asks for less motion. */
function move(plane, to) {
  const from = plane.at ?? [0, 0, 1];
  plane.at = to;
  const set = ([x, y, scale]) => plane.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
  if (still()) return set(to);
  const began = performance.now();
  const step = (now) => {
    if (plane.at !== to) return;
    const share = Math.min(1, (now - began) / 260);
    const eased = 1 - (1 - share) ** 3;
    set(to.map((value, i) => from[i] + (value - from[i]) * eased));
    if (share < 1) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

// Days

export const iso = (date) => new Date(date).toISOString().slice(0, 10);
export const day = (date) => new Date(`${date}T12:00:00Z`).toLocaleDateString(undefined, { day: "numeric", month: "short", year: new Date(date).getUTCFullYear() === new Date().getUTCFullYear() ? undefined : "numeric" });

function sliding(laid, beads, at, moved) {
  const first = laid.since.length ? laid.since.reduce((a, b) => (a < b ? a : b)) : iso(Date.now());
  const today = iso(Date.now());
  const days = Math.max(1, Math.round((new Date(today) - new Date(first)) / DAY));
  const input = h("input", { type: "range", min: 0, max: days, value: days, "aria-label": "As of" });
  const of = () => iso(new Date(first).getTime() + Number(input.value) * DAY);
  let count = 0;
  const draw = () => {
    const then = of();
    const last = Number(input.value) === days;
    count = 0;
    beads.forEach((bead, n) => {
      const there = laid.since[n] <= then && (!laid.until[n] || laid.until[n] > then || (!last && laid.until[n] === then));
      bead.classList.toggle("off", !there);
      count += there;
    });
    input.setAttribute("aria-valuetext", `${day(then)}: ${plural(count, "memory")}`);
  };
  input.addEventListener("input", () => (draw(), moved(Number(input.value) === days ? null : of())));
  if (at) input.value = Math.round((new Date(at) - new Date(first)) / DAY);
  draw();
  const told = () => {
    const last = Number(input.value) === days;
    const what = `${last ? "Today" : day(of())}: ${plural(count, "memory")}`;
    return laid.id.length ? [h("span", { class: "words" }, what), h("span", { class: "small" }, "Point at a bead to read it; click it to open it.")] : "";
  };
  return { row: h("label", { class: "slider" }, h("span", null, day(first)), input, h("span", null, "today")), told };
}

const topicTold = (laid, spot) => [
  h("span", { class: "words" }, `${spot.label || "other"}: ${plural(spot.count, "memory")}`),
  h("span", { class: "small" }, "Escape, or a click beside the beads, leads back."),
];

const legend = (laid) => {
  const tiers = [...new Set(laid.tier)].sort((a, b) => tone(a).localeCompare(tone(b)));
  return h(
    "span",
    { class: "legend" },
    tiers.map((tier) => h("span", null, h("i", { class: `bead ${tone(tier)}` }), LEGEND[tier] ?? tier)),
  );
};

/** Return the same as lists, for the keyboard and for whoever does not see the drawing. */
function asList(page, laid) {
  const open = laid.spots.map((spot, n) => {
    const inside = h("ul", { class: "small" });
    const fill = () => {
      if (inside.childElementCount) return;
      const here = laid.id.flatMap((id, i) => (laid.topic[i] === n && !laid.until[i] ? [i] : []));
      put(
        inside,
        here.slice(-200).reverse().map((i) => h("li", null, h("a", { href: page.link("entry", laid.id[i]) }, laid.words[i]))),
      );
    };
    return h("details", { ontoggle: fill }, h("summary", null, `${spot.label || "other"} (${number(spot.count, 0)})`), inside);
  });
  return open.length ? h("details", { class: "as-list" }, h("summary", null, "The board as a list"), open) : null;
}
