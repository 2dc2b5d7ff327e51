// Access: the grants of other clients. A token is shown once.
import { get, post, send } from "../api.js";
import { h } from "../dom.js";
import { ask, badge, confirm, doing, empty, facts, field, head, time, toast } from "../parts.js";
import { tiersOf } from "../places.js";

const CAN = {
  read: "search and read",
  write: "remember and correct",
  forget: "forget",
  review: "see what is held",
  conversations: "hold conversations",
  jobs: "see and run jobs",
  stats: "see numbers",
  events: "read the event log",
  scrub_plan: "plan a scrub",
  metrics: "read the server's metrics",
};

export async function show(page) {
  const [{ grants }, tiers] = await Promise.all([get("/v1/grants"), tiersOf(page)]);
  const said = h("div");
  const names = Object.fromEntries(page.workspaces.map((one) => [one.id, one.name]));
  const live = grants.filter((one) => state(one) === "live");
  return [
    head(
      "Agents and access",
      "Other clients: agents over MCP, programs over HTTP. Each has a grant, which says what it may do, where, and for how long.",
      h("button", { class: "first", onclick: () => create(page, tiers) }, "New grant"),
    ),
    said,
    grants.length
      ? h("p", { class: "quiet" }, `${live.length} live, ${grants.length - live.length} expired or revoked.`)
      : empty("Nobody else has access", "A grant lets an agent or a program in, with a token of its own."),
    h(
      "ul",
      { class: "list" },
      grants.toReversed().map((grant) =>
        h(
          "li",
          { class: "card" },
          h(
            "div",
            { class: "row between" },
            h("h2", { class: "wrap" }, grant.name),
            state(grant) === "live"
              ? h(
                  "button",
                  { class: "danger small", onclick: revoke(page, grant, said) },
                  "Revoke",
                  h("span", { class: "away" }, ` ${grant.name}`),
                )
              : null,
          ),
          h(
            "div",
            { class: "meta" },
            badge(state(grant), state(grant) === "live" ? "good" : "bad"),
            grant.capabilities.map((one) => badge(CAN[one] ?? one)),
          ),
          facts({
            workspaces: grant.workspaces.map((id) => names[id] ?? id).join(", "),
            "acts as": grant.agent,
            trust: grant.trust,
            tiers: grant.reach.tiers.join(", ") || "the workspace's own",
            scope: Object.entries(grant.reach.scope)
              .map(([key, value]) => `${key}=${value}`)
              .join(", "),
            channels: grant.reach.channels.length || "",
            conversations: grant.reach.conversations.length || "",
            created: time(grant.created_at),
            expires: grant.expires_at ? time(grant.expires_at) : "never",
            revoked: grant.revoked_at && time(grant.revoked_at),
          }),
        ),
      ),
    ),
  ];
}

function state(grant) {
  if (grant.revoked_at) return "revoked";
  return grant.expires_at && new Date(grant.expires_at) <= new Date() ? "expired" : "live";
}

function revoke(page, grant, said) {
  return doing(said, async () => {
    if (
      !(await confirm(
        `Revoke “${grant.name}”?`,
        "Its token stops working at once. You cannot undo this, but you can create a new grant.",
        "Revoke",
        "danger",
      ))
    )
      return;
    await send("DELETE", `/v1/grants/${grant.id}`);
    toast("Revoked.");
    page.go("access");
  });
}

async function create(page, tiers) {
  const issued = await ask("New grant", (close) => {
    const name = h("input", { name: "name", required: true, placeholder: "laptop agent" });
    const days = h("input", { type: "number", name: "days", min: 1, value: 30 });
    const scope = h("input", { name: "scope", placeholder: "org_id=acme" });
    const unverified = h("input", { type: "checkbox", name: "unverified" });
    const said = h("div");
    const boxes = (legend, group, options, on) =>
      h(
        "fieldset",
        null,
        h("legend", null, legend),
        h(
          "div",
          { class: "row" },
          options.map(([value, label]) =>
            h(
              "label",
              { class: "check" },
              h("input", { type: "checkbox", name: group, value, checked: on.includes(value) }),
              label,
            ),
          ),
        ),
      );
    const form = h(
      "form",
      {
        onsubmit: doing(said, async () => {
          const chosen = (group) => [...form.querySelectorAll(`input[name=${group}]:checked`)].map((one) => one.value);
          const body = {
            name: name.value.trim(),
            workspaces: chosen("workspace"),
            can: chosen("can"),
            tiers: chosen("tier"),
            unverified: unverified.checked,
          };
          if (scope.value.trim())
            body.scope = Object.fromEntries(
              scope.value.split(",").map((pair) => {
                const [key, ...rest] = pair.split("=");
                return [key.trim(), rest.join("=").trim()];
              }),
            );
          if (days.value) body.expires_at = new Date(Date.now() + Number(days.value) * 86400000).toISOString();
          close(await post("/v1/grants", body, { repeatable: false }));
        }),
      },
      field("Name", name, "the person or program that gets it"),
      boxes(
        "Workspaces",
        "workspace",
        page.workspaces.map((one) => [one.name, one.name]),
        [page.w],
      ),
      boxes("It may", "can", Object.entries(CAN), ["read"]),
      boxes(
        "Only these tiers (none: the workspace's own)",
        "tier",
        tiers.map((one) => [one.name, one.name]),
        [],
      ),
      field("Scope keys", scope, "bind it to one tenant: key=value, with commas between; empty for a spec without tenants"),
      field("Ends after days", days, "leave it empty for a grant that does not expire"),
      h("label", { class: "check" }, unverified, "Treat its entries as text of unknown authorship"),
      said,
      h(
        "div",
        { class: "row end" },
        h("button", { type: "button", onclick: () => close() }, "Cancel"),
        h("button", { class: "first" }, "Create"),
      ),
    );
    return form;
  });
  if (!issued) return;
  await ask("Copy the token now", (close) => [
    h("p", null, "The token is shown only once; the server keeps only a digest of it."),
    field(
      "Token",
      h("input", {
        class: "mono",
        readonly: true,
        value: issued.token,
        name: "token",
        onfocus: (event) => event.target.select(),
      }),
    ),
    h(
      "div",
      { class: "row end" },
      h(
        "button",
        {
          onclick: () =>
            navigator.clipboard.writeText(issued.token).then(
              () => toast("Copied."),
              () => toast("The browser does not allow copying: select the token and copy it yourself."),
            ),
        },
        "Copy",
      ),
      h("button", { class: "first", onclick: () => close() }, "I have it"),
    ),
  ]);
  page.go("access");
}
