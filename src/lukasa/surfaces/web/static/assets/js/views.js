// The views of the page. A view is a module in views/ with `show(page)`; here is its title and its place in the
// navigation. To add one, add the module and its line: nothing else lists views.

/** The groups of the navigation, named for what people want. */
export const GROUPS = ["What it knows", "Look closer", "Keep in order"];

/** name: [title, group, the view whose tab it is]. A view without a group is reached from others only. */
export const VIEWS = {
  home: ["Home", 0],
  timeline: ["Timeline", 0],
  people: ["People and things", 0],
  conversations: ["Sessions", 0],
  inbox: ["Waiting for you", 0],
  browse: ["All entries", 1],
  context: ["What an agent sees", 1],
  library: ["Library", 1],
  pages: ["Pages", 1],
  access: ["Agents and access", 2],
  transfer: ["Export and import", 2],
  backups: ["Backups", 2],
  workspace: ["This workspace", 2],
  sync: ["Sync", 2],
  scrub: ["Scrub and erase", 2],
  activity: ["Activity", 2],
  settings: ["Settings", 2],
  overview: ["Numbers", null, "activity"],
  telemetry: ["Telemetry", null, "activity"],
  jobs: ["Jobs", null, "activity"],
  log: ["Event log", null, "activity"],
  add: ["Remember", null],
  entry: ["Entry", null],
};
const TAB_NAMES = { activity: "What happened" };

export const title = (view) => VIEWS[view]?.[0] ?? "";

/** Return the view that the navigation marks while this one is shown. */
export const family = (view) => VIEWS[view]?.[2] ?? view;

/** Return the tabs of the family of a view, as [name, title]; none if it stands alone. */
export function tabs(view) {
  const first = family(view);
  const others = Object.keys(VIEWS).filter((name) => VIEWS[name][2] === first);
  return others.length ? [first, ...others].map((name) => [name, TAB_NAMES[name] ?? title(name)]) : [];
}
