// All requests: same origin, the session's cookie, the CSRF token on changes, problems as errors.

let csrf = "";

/** The error of a refused request: what happened, and what to change. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.code = body.type || body.code || "";
    this.title = body.title || "";
    this.fix = body.fix || "";
    this.body = body;
  }
}

export async function send(method, path, { body, query, etag, signal, repeatable = true } = {}) {
  const url = new URL(path, location.origin);
  for (const [key, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== "" && one != null) url.searchParams.append(key, one);
  }
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["X-CSRF-Token"] = csrf;
  if (method === "POST" && repeatable) headers["Idempotency-Key"] = crypto.randomUUID();
  if (etag !== undefined) headers["If-Match"] = `"${etag}"`;
  let answer;
  try {
    answer = await fetch(url, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, {
      title: "No answer",
      detail: "The server did not answer.",
      fix: "Is `lukasa serve` still running? Start it again and reload.",
    });
  }
  if (!answer.ok) {
    const problem = new Problem(answer.status, await answer.json().catch(() => ({})));
    if (answer.status === 401) dispatchEvent(new CustomEvent("signed-out"));
    throw problem;
  }
  if (answer.status === 204) return null;
  return answer.json();
}

/** Send a file as it is; the answer is JSON. */
export async function upload(path, file, query = {}) {
  const url = new URL(path, location.origin);
  for (const [key, value] of Object.entries(query)) if (value) url.searchParams.set(key, value);
  const headers = { Accept: "application/json", "Content-Type": "application/octet-stream", "X-CSRF-Token": csrf };
  const answer = await fetch(url, { method: "POST", headers, body: file, credentials: "same-origin", redirect: "error" });
  if (answer.ok) return answer.json();
  if (answer.status === 401) dispatchEvent(new CustomEvent("signed-out"));
  throw new Problem(answer.status, await answer.json().catch(() => ({})));
}

/** Send a file whose answer comes in lines of JSON; `tell` gets each line, and the last one is the result. */
export async function stream(path, file, query, tell) {
  const url = new URL(path, location.origin);
  for (const [key, value] of Object.entries(query)) if (value) url.searchParams.set(key, value);
  const headers = { "Content-Type": "application/octet-stream", "X-CSRF-Token": csrf };
  const answer = await fetch(url, { method: "POST", headers, body: file, credentials: "same-origin", redirect: "error" });
  if (answer.status === 401) dispatchEvent(new CustomEvent("signed-out"));
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let last = {};
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    for (const line of lines) tell((last = JSON.parse(line)));
  }
  if (last.problem) throw new Problem(0, last.problem);
  if (!last.done)
    throw new Problem(0, { detail: "The server stopped before the end.", fix: "Import the file again: it goes on where it was." });
  return last.done;
}

export const get = (path, query, options) => send("GET", path, { query, ...options });
export const post = (path, body = {}, options) => send("POST", path, { body, ...options });

/** The API of one workspace: at("main").get("entries"). */
export function at(workspace) {
  const base = `/v1/workspaces/${encodeURIComponent(workspace)}/`;
  return {
    base,
    get: (path, query, options) => get(base + path, query, options),
    post: (path, body, options) => post(base + path, body, options),
    put: (path, body, etag) => send("PUT", base + path, { body, etag }),
    patch: (path, body, etag) => send("PATCH", base + path, { body, etag }),
    drop: (path, body, etag) => send("DELETE", base + path, { body, etag }),
    chart: async (name, query) => (await get(`${base}charts/${name}`, query)).svg,
  };
}

export const seg = encodeURIComponent;

/** Exchange a one-time code for a session. */
export async function enter(code) {
  keep((await post("/session", { code })).csrf);
}

/** Return the session of the cookie; throw if there is none. */
export async function resume() {
  const session = await get("/session");
  keep(session.csrf);
  return session;
}

export async function leave() {
  await send("DELETE", "/session");
  csrf = "";
}

function keep(token) {
  csrf = token;
}
