// Jobs: background work, its results, and buttons to retry or cancel a job.
import { h } from "../dom.js";
import { seg } from "../api.js";
import { badge, confirm, copyId, doing, empty, facts, field, head, select, time, toast } from "../parts.js";

const STATES = ["queued", "running", "done", "dead", "cancelled"];
const RUN = [
  ["consolidate", "Consolidate"],
  ["maintain", "Maintain"],
  ["reflect", "Reflect"],
];

export async function show(page) {
  const state = page.query.get("state") ?? "";
  const { jobs } = await page.api.get("jobs", { state, limit: 100 });
  const said = h("div");
  const act = (path, words, body) =>
    doing(said, async () => {
      await page.api.post(path, body);
      toast(words);
      page.go("jobs", page.query);
    });
  const picker = select([["", "all"], ...STATES.map((one) => [one, one])], state, {
    name: "state",
    onchange: () => page.go("jobs", new URLSearchParams(picker.value ? { state: picker.value } : {})),
  });
  return [
    head(
      "Jobs",
      "Durable background work. A failed job is tried again; after its last attempt it is dead until you retry it.",
      RUN.map(([kind, title]) =>
        h("button", { onclick: act("jobs", `${title} will run now.`, { kind }) }, `${title} now`),
      ),
    ),
    said,
    h(
      "div",
      { class: "stack" },
      h("div", { class: "filters" }, field("State", picker)),
      jobs.length
        ? h(
            "ul",
            { class: "list" },
            jobs.map((job) => card(page, job, act, said)),
          )
        : empty("No jobs", state ? `None is ${state}.` : "No background work has been queued yet."),
    ),
  ];
}

function card(page, job, act, said) {
  const cancel = doing(said, async () => {
    if (
      !(await confirm(
        `Cancel this ${job.kind} job?`,
        "A worker that runs it can write nothing more for it. You can retry it later.",
        "Cancel the job",
        "danger",
      ))
    )
      return;
    await page.api.post(`jobs/${seg(job.id)}/cancel`, {});
    toast("Cancelled.");
    page.go("jobs", page.query);
  });
  return h(
    "li",
    { class: "card" },
    h(
      "div",
      { class: "row between" },
      h("h2", { class: "wrap" }, job.kind),
      h(
        "div",
        { class: "row" },
        ["dead", "cancelled"].includes(job.state)
          ? h(
              "button",
              { class: "small", onclick: act(`jobs/${seg(job.id)}/retry`, "It is queued again.", {}) },
              "Try again",
            )
          : null,
        ["queued", "running"].includes(job.state)
          ? h("button", { class: "small danger", onclick: cancel }, "Cancel")
          : null,
      ),
    ),
    h(
      "div",
      { class: "meta" },
      badge(job.state),
      h("span", null, job.attempts ? `attempt ${job.attempts} of ${job.max_attempts}` : "not tried yet"),
      h("span", null, "touched ", time(job.updated_at)),
      job.state === "queued" ? h("span", null, "due ", time(job.run_after)) : null,
    ),
    job.error ? h("p", { class: "notice bad" }, job.error) : null,
    h(
      "details",
      null,
      h("summary", null, "Detail"),
      facts({
        key: job.key,
        id: copyId(job.id),
        created: time(job.created_at),
        worker: job.worker,
        "lease until": job.lease_until && time(job.lease_until),
        asked: h("pre", null, JSON.stringify(job.payload, null, 2)),
        gave: Object.keys(job.result).length ? h("pre", null, JSON.stringify(job.result, null, 2)) : "",
      }),
    ),
  );
}
