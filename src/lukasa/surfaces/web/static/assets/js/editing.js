// Editing an entry: only if nobody changed it meanwhile, and if somebody did, with both texts in view.
import { diff } from "./diff.js";
import { h } from "./dom.js";
import { ask, doing, field, problem, select, toast } from "./parts.js";

/** Edit in a dialog. If somebody else changed the entry meanwhile, show both texts and let the user decide. */
export async function edit(page, entry, mine) {
  await ask("Edit the entry", (close) => {
    const text = h("textarea", { required: true, name: "content", value: mine?.content ?? entry.content });
    const importance = h("input", {
      type: "number",
      min: 0,
      max: 1,
      step: "any",
      name: "importance",
      value: mine?.importance ?? entry.importance,
    });
    const kind = select(["semantic", "episodic", "procedural"], mine?.kind ?? entry.kind, { name: "kind" });
    const tags = h("input", { name: "tags", value: (mine?.tags ?? entry.tags).join(", ") });
    const said = h("div");
    const save = async () => {
      const wanted = {
        content: text.value,
        importance: Number(importance.value),
        kind: kind.value,
        tags: split(tags.value),
      };
      const patch = Object.fromEntries(
        Object.entries(wanted).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(entry[key])),
      );
      if (!Object.keys(patch).length) return close();
      try {
        const written = await page.api.patch(`entries/${entry.id}`, patch, entry.version);
        close();
        toast(written.replaces.length ? `Saved; it replaces ${written.replaces.length} other entries.` : "Saved.");
        page.go("entry", entry.id);
      } catch (error) {
        if (error.status !== 412) throw error;
        close();
        await lost(page, entry.id, wanted, error);
      }
    };
    return h(
      "form",
      { onsubmit: doing(said, save) },
      field("Text", text),
      h(
        "div",
        { class: "filters" },
        field("Importance", importance),
        field("Kind", kind),
        field("Tags", tags, "separated by commas"),
      ),
      said,
      h(
        "div",
        { class: "row end" },
        h("button", { type: "button", onclick: () => close() }, "Cancel"),
        h("button", { class: "first" }, "Save"),
      ),
    );
  });
}

async function lost(page, id, mine, error) {
  const theirs = await page.api.get(`entries/${id}`);
  const again = await ask("Somebody changed it meanwhile", (close) => [
    problem(error),
    h(
      "div",
      { class: "stack" },
      h("h3", null, `As it is now (version ${theirs.version})`),
      h("div", { class: "diff" }, theirs.content),
      h("h3", null, "From theirs to yours"),
      diff(theirs.content, mine.content),
    ),
    h(
      "div",
      { class: "row end" },
      h("button", { onclick: () => close(false) }, "Keep theirs"),
      h("button", { class: "first", onclick: () => close(true) }, "Edit again with mine"),
    ),
  ]);
  if (again) await edit(page, theirs, mine);
  else page.go("entry", id);
}

export const split = (text) =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);
