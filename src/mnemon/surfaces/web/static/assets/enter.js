// Exchanges the code in the link's fragment for a session, then shows which workspaces there are.

const state = document.getElementById("state");

async function enter() {
  const code = new URLSearchParams(location.hash.slice(1)).get("enter");
  history.replaceState(null, "", "/");
  const answer = code
    ? await fetch("/session", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ code }),
      })
    : await fetch("/session");
  if (!answer.ok) {
    state.textContent = (await answer.json()).fix;
    return;
  }
  const { workspaces } = await (await fetch("/v1/workspaces")).json();
  state.textContent = "Your workspaces:";
  for (const workspace of workspaces) {
    const line = document.createElement("li");
    line.textContent = workspace.name;
    document.getElementById("workspaces").append(line);
  }
}

enter();
