// The difference of two texts by words, as inserted and deleted runs.
import { h } from "./dom.js";

const LIMIT = 4000; // words of both together; beyond, whole lines are compared

export function diff(before, after) {
  const split = (text) => text.match(/\s+|[^\s]+/g) ?? [];
  let a = split(before),
    b = split(after);
  if (a.length + b.length > LIMIT) [a, b] = [before, after].map((text) => text.match(/[^\n]*\n|[^\n]+/g) ?? []);
  return h(
    "div",
    { class: "diff" },
    runs(a, b).map(([kind, text]) => (kind === "=" ? text : h(kind === "-" ? "del" : "ins", null, text))),
  );
}

/** A difference that the server made: runs that stay, go or come, and stretches that it left out. */
export const shown = (given) =>
  h(
    "div",
    { class: "diff" },
    given.map(({ kind, text }) =>
      kind === "same" ? text : kind === "cut" ? h("span", { class: "quiet" }, ` … ${text} … `) : h(kind === "added" ? "ins" : "del", null, text),
    ),
  );

function runs(a, b) {
  let start = 0,
    end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const middle = between(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return joined([
    ...a.slice(0, start).map((t) => ["=", t]),
    ...middle,
    ...a.slice(a.length - end).map((t) => ["=", t]),
  ]);
}

function between(a, b) {
  if (a.length * b.length > 4e6) return [...a.map((t) => ["-", t]), ...b.map((t) => ["+", t])];
  const long = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) {
      long[i][j] = a[i] === b[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
    }
  const out = [];
  let i = 0,
    j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      out.push(["=", a[i++]]);
      j++;
    } else if (long[i + 1][j] >= long[i][j + 1]) out.push(["-", a[i++]]);
    else out.push(["+", b[j++]]);
  }
  return [...out, ...a.slice(i).map((t) => ["-", t]), ...b.slice(j).map((t) => ["+", t])];
}

function joined(parts) {
  const out = [];
  for (const [kind, text] of parts) {
    if (out.at(-1)?.[0] === kind) out.at(-1)[1] += text;
    else out.push([kind, text]);
  }
  return out;
}
