// The search field of the bar.
import { h } from "./dom.js";

/** Return the field: Enter searches this workspace; `/` leads to it from anywhere. */
export function findField(w, go) {
  const words = h("input", {
    type: "search",
    name: "q",
    "aria-label": "Find anything",
    placeholder: "Find anything …",
    autocomplete: "off",
  });
  const asked = (event) => {
    event.preventDefault();
    if (words.value.trim()) go(w, "browse", new URLSearchParams({ q: words.value.trim() }));
  };
  return h("form", { class: "find", role: "search", onsubmit: asked }, words, h("kbd", { "aria-hidden": "true" }, "/"));
}

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]")) return;
  const field = document.querySelector(".bar .find input");
  if (!field) return;
  event.preventDefault();
  field.focus();
});
