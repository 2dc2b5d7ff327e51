/**
 * Memory for the Vercel AI SDK, as a middleware of a language model.
 *
 *     const model = wrapLanguageModel({ model: openai("gpt-5"), middleware: lukasaMemory(memory.workspace("assistant")) });
 *
 * Before each call of the model it puts what memory holds about the user's last message into the prompt, as a system
 * message. After it, it stores the message and the reply as episodes. If memory cannot be reached, the call goes on
 * without it, and `onError` is told.
 *
 * The file imports nothing from the SDK: its types are those parts that versions 3 and 4 of the specification share.
 */

import type { Workspace } from "./index.js";

export interface MemoryOptions<V extends string = "v3"> {
  /** The specification that the SDK has: "v3" for AI SDK 6, which is the default, "v4" for 7. */
  specificationVersion?: V;
  /** How many tokens of memory go into a prompt, beside the pages. */
  budget?: number;
  /** The tiers to read and to write; those of the workspace's spec if left out. */
  tiers?: string[];
  tier?: string;
  /** A conversation that the turns belong to, by its code. */
  conversation?: string;
  /** Store the user's message and the model's reply. Default true. */
  remember?: boolean;
  /** Who speaks in stored turns. */
  user?: string;
  assistant?: string;
  /** Told of errors of memory, which never stop the model. Default: `console.warn`. */
  onError?: (error: unknown) => void;
}

interface Part {
  readonly type: string;
  readonly text?: string;
}
interface Message {
  readonly role: string;
  readonly content: string | readonly Part[];
}

/** Return the middleware for `wrapLanguageModel`. */
export function lukasaMemory<V extends string = "v3">(world: Workspace, options: MemoryOptions<V> = {}) {
  const tell = options.onError ?? ((error: unknown) => console.warn("Lukasa memory:", error));
  const asked = new WeakMap<object, string>();

  async function recalled(question: string): Promise<string> {
    try {
      const { budget, tiers, conversation } = options;
      const more = { ...(budget ? { budget } : {}), ...(tiers ? { tiers } : {}), ...(conversation ? { conversation } : {}) };
      return (await world.context(question, more)).text;
    } catch (error) {
      tell(error);
      return "";
    }
  }

  async function remember(said: string, reply: string): Promise<void> {
    const turn = (content: string, source: string) => ({ content, source, kind: "episodic" as const });
    const turns = [turn(said, options.user ?? "user"), turn(reply, options.assistant ?? "assistant")];
    const memos = turns.filter(({ content }) => content.trim()).map(({ source, ...memo }) => spoken(memo, source));
    if (options.remember === false || !said.trim()) return;
    try {
      const { tier, conversation } = options;
      await world.call("memory_put_many", { memos, ...(tier ? { tier } : {}), ...(conversation ? { conversation } : {}) });
    } catch (error) {
      tell(error);
    }
  }

  return {
    specificationVersion: (options.specificationVersion ?? "v3") as V,

    async transformParams<P extends { prompt: any[] }>({ params }: { params: P }): Promise<P> {
      const question = lastSaid(params.prompt);
      const text = question ? await recalled(question) : "";
      // The SDK calls the model again for each round of tools; the person said nothing new in between.
      const isNew = (params.prompt.at(-1) as Message | undefined)?.role === "user";
      const changed = text ? { ...params, prompt: withMemory(params.prompt, text) } : { ...params };
      if (isNew) asked.set(changed, question);
      return changed;
    },

    async wrapGenerate<R extends { content: any[] }>({ doGenerate, params }: { doGenerate: () => PromiseLike<R>; params: object }): Promise<R> {
      const result = await doGenerate();
      await remember(asked.get(params) ?? "", textOf(result.content));
      return result;
    },

    async wrapStream<R extends { stream: ReadableStream<any> }>({ doStream, params }: { doStream: () => PromiseLike<R>; params: object }): Promise<R> {
      const result = await doStream();
      const said = asked.get(params) ?? "";
      let reply = "";
      const listening = new TransformStream<{ type: string; delta?: string }, unknown>({
        transform(part, controller) {
          if (part.type === "text-delta") reply += part.delta ?? "";
          controller.enqueue(part);
        },
        flush: () => remember(said, reply),
      });
      return { ...result, stream: result.stream.pipeThrough(listening) };
    },
  };
}

/** A turn as memory takes it: the speaker of a line is read from its beginning. */
function spoken<M extends { content: string }>(memo: M, source: string): M {
  return { ...memo, content: `${source}: ${memo.content}` };
}

function lastSaid(prompt: readonly Message[]): string {
  const said = [...prompt].reverse().find((message) => message.role === "user");
  return said ? textOf(said.content) : "";
}

function textOf(content: string | readonly Part[]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");
}

/** Put memory after the other system messages: what comes before it stays the same, and a provider may cache it. */
function withMemory(prompt: readonly Message[], text: string): Message[] {
  const first = prompt.findIndex((message) => message.role !== "system");
  const at = first < 0 ? prompt.length : first;
  return [...prompt.slice(0, at), { role: "system", content: text }, ...prompt.slice(at)];
}
