/**
 * A client for a Lukasa server. It needs `fetch`, as Node 20, Deno, Bun and browsers have it, and nothing else.
 *
 *     const memory = new Lukasa({ url: "http://127.0.0.1:8765", token: process.env.LUKASA_TOKEN! });
 *     const world = memory.workspace("novel");
 *     await world.put("The villain is called Malachar");
 *     for (const hit of (await world.read("who is the villain?")).hits) console.log(hit.entry.content);
 */

import { ROUTES } from "./api.js";
import type { ContextOut, EntryOut, Operations, RecallOut, WrittenOut } from "./api.js";

export type * from "./api.js";

export type Operation = keyof Operations;
export type Input<K extends Operation> = Operations[K]["input"];
export type Output<K extends Operation> = Operations[K]["output"];
/** The input of an operation without the workspace, which a `Workspace` adds. */
export type Within<K extends Operation> = Omit<Input<K>, "workspace">;

export interface Options {
  /** Where the server is, such as http://127.0.0.1:8765. */
  url: string;
  /** A token of a grant: `lukasa grant create` prints one. */
  token: string;
  /** Scope keys that every request binds, such as the customer that it is for. */
  scope?: Record<string, string>;
  /** Used instead of the global fetch. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** The version that a change is about, as it was read; `"*"` for any. */
  version?: number | "*";
  /** A request that arrives twice under one key is done once. */
  idempotencyKey?: string;
}

/** A refusal of the server: what happened, and what to change. */
export class LukasaError extends Error {
  override readonly name = "LukasaError";

  constructor(
    /** The HTTP status; 0 if there was no answer of a Lukasa server. */
    readonly status: number,
    /** A stable code, such as not-found. */
    readonly code: string,
    readonly detail: string,
    readonly fix: string,
    readonly requestId = "",
    options?: ErrorOptions,
  ) {
    super(fix ? `${detail} (${fix})` : detail, options);
  }
}

export class Lukasa {
  readonly #options: Options;

  constructor(options: Options) {
    if (!options.url || !options.token) {
      throw new TypeError("Lukasa needs a url and a token: `lukasa serve` prints the one, `lukasa grant create` the other");
    }
    this.#options = options;
  }

  /** Return a handle for one workspace. It asks the server nothing. */
  workspace(name: string): Workspace {
    return new Workspace(this, name);
  }

  /** Call any operation of the server by its name, with all of its fields in one object. */
  async call<K extends Operation>(name: K, input: Input<K>, options: CallOptions = {}): Promise<Output<K>> {
    const [method, template, versioned] = ROUTES[name];
    const rest: Record<string, unknown> = { ...input };
    const path = template.replace(/\{(\w+)\}/g, (_, field: string) => {
      const value = rest[field];
      delete rest[field];
      if (typeof value !== "string" || !value) throw new TypeError(`${name} needs ${field}`);
      return encodeURIComponent(value);
    });
    const inQuery = method === "GET" || method === "DELETE";
    const url = new URL(this.#options.url.replace(/\/+$/, "") + path + (inQuery ? query(rest) : ""));
    return (await this.#answer(url, {
      method,
      headers: this.#headers(options, versioned, !inQuery),
      ...(inQuery ? {} : { body: JSON.stringify(rest) }),
      ...(options.signal ? { signal: options.signal } : {}),
    })) as Output<K>;
  }

  #headers(options: CallOptions, versioned: boolean, body: boolean): Record<string, string> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#options.token}` };
    if (body) headers["content-type"] = "application/json";
    if (this.#options.scope) headers["lukasa-scope"] = new URLSearchParams(this.#options.scope).toString();
    if (options.idempotencyKey) headers["idempotency-key"] = options.idempotencyKey;
    if (versioned && options.version === 0) headers["if-none-match"] = "*";
    else if (versioned) headers["if-match"] = typeof options.version === "number" ? `"${options.version}"` : "*";
    return headers;
  }

  async #answer(url: URL, request: RequestInit): Promise<unknown> {
    let response: Response;
    try {
      response = await (this.#options.fetch ?? fetch)(url, request);
    } catch (error) {
      if (request.signal?.aborted) throw error;
      throw new LukasaError(0, "unreachable", `no server answers at ${url.origin}`, "run `lukasa serve`", "", { cause: error });
    }
    const told = (await response.json().catch(() => ({}))) as Record<string, string>;
    if (response.ok) return told;
    const code = told["type"] ?? "no-answer";
    const detail = told["detail"] ?? `${url.origin} answered ${response.status}, and not as a Lukasa server`;
    throw new LukasaError(response.status, code, detail, told["fix"] ?? "", told["request_id"]);
  }
}

/** The calls that a program makes most, in one workspace; `call` reaches all others. */
export class Workspace {
  constructor(
    readonly memory: Lukasa,
    readonly name: string,
  ) {}

  /** Call any operation that is about a workspace. */
  call<K extends Operation>(name: K, input: Within<K>, options?: CallOptions): Promise<Output<K>> {
    return this.memory.call(name, { ...input, workspace: this.name } as unknown as Input<K>, options);
  }

  /** Store a statement. `outcome` of the answer says what became of it. */
  put(content: string, more: Omit<Within<"memory_put">, "content"> = {}, options?: CallOptions): Promise<WrittenOut> {
    return this.call("memory_put", { content, ...more }, options);
  }

  /** Return what memory holds about a question, the best first. */
  read(question: string, more: Omit<Within<"memory_read">, "query"> = {}, options?: CallOptions): Promise<RecallOut> {
    return this.call("memory_read", { query: question, ...more }, options);
  }

  /** Return one text for a prompt: the pages, and what fits the question within the budget. */
  context(question = "", more: Omit<Within<"memory_context">, "query"> = {}, options?: CallOptions): Promise<ContextOut> {
    return this.call("memory_context", { query: question, ...more }, options);
  }

  get(id: string, options?: CallOptions): Promise<EntryOut> {
    return this.call("memory_get", { id }, options);
  }

  /** Change an entry. Without `version` in the options, whatever version it has. */
  update(id: string, changes: Omit<Within<"memory_update">, "id">, options?: CallOptions): Promise<WrittenOut> {
    return this.call("memory_update", { id, ...changes }, options);
  }

  /** Take an entry out of recall. Its history stays, and `memory_restore` brings it back. */
  forget(id: string, reason?: string, options?: CallOptions): Promise<WrittenOut> {
    return this.call("memory_forget", reason === undefined ? { id } : { id, reason }, options);
  }
}

function query(fields: Record<string, unknown>): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}
