// Backups: make them, list and check them, apply erasures to older ones, and the command that brings one back.
import { get, post } from "../api.js";
import { h, put } from "../dom.js";
import { badge, command, doing, empty, facts, field, head, later, notice, number, plural, table, time } from "../parts.js";

const KEPT = "backup-folder"; // the browser remembers the folder that was used last

export async function show() {
  const folder = h("input", {
    name: "folder",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "/mnt/backups",
    value: localStorage.getItem(KEPT) ?? "",
  });
  const list = h("div", { class: "stack" });
  const said = h("div", { class: "stack" });
  const look = () => {
    const at = folder.value.trim();
    put(said);
    put(list, at ? kept(at, said) : empty("No folder chosen", "Name a folder of this server's machine, best on another disk."));
  };
  const form = h(
    "form",
    {
      class: "row",
      onsubmit: (event) => {
        event.preventDefault();
        localStorage.setItem(KEPT, folder.value.trim());
        look();
      },
    },
    field("Folder of backups", folder, "A folder of the machine that this server runs on. It may be new."),
    h("button", null, "Show backups"),
  );
  look();
  return [
    head(
      "Backups",
      "A backup is all of your memory at one moment, made while you go on. It counts once it was restored on trial and compared row by row.",
    ),
    h("div", { class: "stack wide" }, h("section", { class: "panel stack" }, form, making(folder, said, look)), said, list),
  ];
}

function making(folder, said, look) {
  const keep = h("input", { name: "keep", autocomplete: "off", placeholder: "7d/4w/12m" });
  const last = h("input", { name: "keep_last", type: "number", min: "1", max: "100000", placeholder: "all" });
  const purge = h("input", { type: "checkbox", name: "purge" });
  const run = doing(said, async () => {
    const given = { folder: folder.value.trim(), keep: keep.value.trim(), purge: purge.checked };
    if (last.value) given.keep_last = Number(last.value);
    localStorage.setItem(KEPT, given.folder);
    put(said, h("p", { class: "loading", role: "status" }, "Backing up, and restoring it on trial …"));
    const done = await post("/v1/backups", given, { repeatable: false });
    look();
    put(said, made(done));
  });
  return h(
    "form",
    { class: "stack", onsubmit: (event) => (folder.reportValidity() ? run(event) : event.preventDefault()) },
    h(
      "details",
      null,
      h("summary", null, "Which older backups stay"),
      h(
        "div",
        { class: "filters" },
        field("Keep the newest of each", keep, "Of the last 7 days, 4 weeks and 12 months: 7d/4w/12m. Empty: all stay."),
        field("Keep the newest", last, "So many in any case. The last good one always stays."),
      ),
    ),
    h("label", { class: "check" }, purge, "Take out of older backups what has been erased or removed for good since"),
    h("div", null, h("button", { class: "first" }, "Back up now")),
    notice("warn", "A backup holds all memory in clear. Keep the folder where only you can read it."),
  );
}

function made(done) {
  const purged = done.purged.map((one) =>
    one.wrong
      ? notice("bad", "The backup of ", time(one.at), ` was not purged: ${one.wrong}.`)
      : h("p", null, "From the backup of ", time(one.at), ` went ${counted(one.removed)}.`),
  );
  return notice(
    done.findings.length ? "warn" : "good",
    h("p", { class: "strong" }, done.findings.length ? "Backed up, with faults of the memory itself." : "Backed up, and restored on trial."),
    h(
      "p",
      null,
      `${plural(done.entries, "entry")} and ${plural(done.events, "event")} of ${plural(done.stores, "store")}; ${bytes(done.written)} new, all backups there take ${bytes(done.size)}.`,
      done.removed.length ? ` ${plural(done.removed.length, "older backup")} went, which no rule keeps.` : "",
    ),
    purged,
    done.findings.map((finding) => h("p", null, finding)),
  );
}

const STATES = { good: "good", faults: "warn", damaged: "bad" };

function kept(folder, said) {
  return later(
    () =>
      get("/v1/backups", { folder }).catch((error) => {
        if (error.status === 404) return { backups: [] };
        throw error;
      }),
    ({ backups }) =>
      backups.length
        ? h(
            "section",
            { class: "panel stack" },
            h("h2", null, plural(backups.length, "backup")),
            table(
              ["Made", "State", "Entries", "Events", "Files", "Bring it back"],
              backups.map((one) => [
                h("span", null, time(one.at), h("span", { class: "small quiet" }, ` ${stamp(one.at)}`)),
                h("span", null, badge(one.state, STATES[one.state]), one.purged_at ? h("span", { class: "small quiet" }, " purged ", time(one.purged_at)) : null),
                number(one.entries, 0),
                number(one.events, 0),
                number(one.files, 0),
                h("button", { class: "small", onclick: () => put(said, back(folder, one)) }, "Show the command"),
              ]),
              { numeric: [2, 3, 4], name: "Backups, newest first" },
            ),
            backups.filter((one) => one.wrong).map((one) => notice("bad", one.wrong)),
            checking(folder),
          )
        : empty("No backup yet", `There is none in ${folder}. “Back up now” makes the first one.`),
  );
}

function checking(folder) {
  const every = h("input", { type: "checkbox", name: "every" });
  const said = h("div", { class: "stack" });
  return h(
    "form",
    {
      class: "stack",
      onsubmit: doing(said, async () => {
        put(said, h("p", { class: "loading", role: "status" }, "Reading every piece, and restoring on trial …"));
        const found = await post("/v1/backups/check", { folder, every: every.checked });
        put(
          said,
          notice(
            found.sound ? "good" : "bad",
            h("p", { class: "strong" }, found.sound ? "All backups are as they were written." : "Something is damaged."),
            found.backups.map((one) =>
              one.wrong.length || one.tried
                ? h("p", null, "The backup of ", time(one.at), one.wrong.length ? `: ${one.wrong.join("; ")}` : " was restored on trial and is sound.")
                : null,
            ),
          ),
        );
      }),
    },
    h("label", { class: "check" }, every, "Restore every backup on trial, not the newest alone"),
    h("div", null, h("button", null, "Check backups")),
    said,
  );
}

/** Nothing that runs can be overwritten, so a terminal brings memory back, into an empty place. */
function back(folder, one) {
  const line = `lukasa --data NEW-FOLDER restore ${quoted(folder)} --at ${one.at}`;
  return h(
    "section",
    { class: "panel stack" },
    h("h2", null, "Bring it back"),
    h("p", null, "A restore never overwrites: it goes into an empty place. Run this in a terminal of that machine, with a folder that is new:"),
    command(line),
    facts({ Workspaces: one.workspaces.join(", "), Made: stamp(one.at) }),
    h("p", { class: "quiet" }, "With --dry-run it only shows which backup that is; with --database it goes into PostgreSQL."),
  );
}

const quoted = (text) => (/^[\w./@:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const stamp = (value) => `${value.slice(0, 19).replace("T", " ")} UTC`;
const bytes = (size) => (size >= 100_000 ? `${number(size / 1_000_000, 1)} MB` : `${number(size / 1000, 1)} kB`);
const counted = (rows) =>
  Object.entries(rows)
    .map(([kind, count]) => `${number(count, 0)} ${kind.replaceAll("_", " ")}`)
    .join(", ");
