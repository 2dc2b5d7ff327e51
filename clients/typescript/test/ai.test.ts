/** The middleware in the real AI SDK, versions 6 and 7, with the SDK's own fake model. */

import assert from "node:assert/strict";
import { test } from "node:test";

import * as ai6 from "ai6";
import { MockLanguageModelV3, simulateReadableStream } from "ai6/test";
import * as ai7 from "ai7";
import { MockLanguageModelV4 } from "ai7/test";

import { lukasaMemory } from "../src/ai.js";
import { Lukasa } from "../src/index.js";

const url = process.env["LUKASA_URL"]!;
const token = process.env["LUKASA_TOKEN"]!;
const world = new Lukasa({ url, token }).workspace("novel");

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const finishReason = { unified: "stop" as const, raw: "stop" };

function answering(text: string) {
  return new MockLanguageModelV3({
    doGenerate: async () => ({ content: [{ type: "text", text }], finishReason, usage, warnings: [] }),
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: "stream-start", warnings: [] },
          { type: "text-start", id: "1" },
          ...text.split(/(?<= )/).map((delta) => ({ type: "text-delta" as const, id: "1", delta })),
          { type: "text-end", id: "1" },
          { type: "finish", finishReason, usage },
        ],
      }),
    }),
  });
}

test("generateText gets memory before the question, and the turn is remembered", async () => {
  await world.put("The ship of the captain is called Meltemi");
  const mock = answering("She sails on the Meltemi.");
  const model = ai6.wrapLanguageModel({ model: mock, middleware: lukasaMemory(world) });
  const { text } = await ai6.generateText({ model, system: "Be brief.", prompt: "Which ship has the captain?" });
  assert.equal(text, "She sails on the Meltemi.");
  const prompt = mock.doGenerateCalls[0]!.prompt;
  assert.deepEqual(prompt.map((message) => message.role), ["system", "system", "user"]);
  assert.equal(prompt[0]!.content, "Be brief.");
  assert.match(String(prompt[1]!.content), /Meltemi/);
  const found = (await world.read("She sails on the Meltemi")).hits.map((hit) => hit.entry);
  const reply = found.find((entry) => entry.content.includes("She sails on the Meltemi."));
  assert.ok(reply, JSON.stringify(found));
  assert.deepEqual([reply.kind, reply.source], ["episodic", "assistant"]);
});

test("streamText does the same, and the stream stays whole", async () => {
  const mock = answering("The oil is in the cellar.");
  const model = ai6.wrapLanguageModel({ model: mock, middleware: lukasaMemory(world, { user: "Ada" }) });
  const { textStream } = ai6.streamText({ model, prompt: "Where did Tom put the oil?" });
  let text = "";
  for await (const piece of textStream) text += piece;
  assert.equal(text, "The oil is in the cellar.");
  const contents = (await world.read("where is the oil?")).hits.map((hit) => hit.entry.content);
  assert.ok(contents.some((content) => content.includes("The oil is in the cellar.")), JSON.stringify(contents));
});

test("nothing is stored with remember: false", async () => {
  const mock = answering("A zebra.");
  const model = ai6.wrapLanguageModel({ model: mock, middleware: lukasaMemory(world, { remember: false }) });
  await ai6.generateText({ model, prompt: "Which animal has stripes?" });
  const contents = (await world.read("zebra")).hits.map((hit) => hit.entry.content);
  assert.ok(!contents.some((content) => content.includes("A zebra.")));
});

test("a model goes on when memory is away, and somebody is told", async () => {
  const told: unknown[] = [];
  const away = new Lukasa({ url: "http://127.0.0.1:1", token }).workspace("novel");
  const middleware = lukasaMemory(away, { onError: (error) => told.push(error) });
  const model = ai6.wrapLanguageModel({ model: answering("Hello."), middleware });
  const { text } = await ai6.generateText({ model, prompt: "Hello?" });
  assert.equal(text, "Hello.");
  assert.equal(told.length, 2);
});

test("AI SDK 7 takes it too", async () => {
  await world.put("The cook of the inn is called Bruno");
  const mock = new MockLanguageModelV4({
    doGenerate: async () => ({ content: [{ type: "text", text: "Bruno cooks." }], finishReason, usage, warnings: [] }),
  });
  const middleware = lukasaMemory(world, { specificationVersion: "v4" });
  const model = ai7.wrapLanguageModel({ model: mock, middleware });
  const { text } = await ai7.generateText({ model, prompt: "Who is the cook of the inn?" });
  assert.equal(text, "Bruno cooks.");
  assert.match(JSON.stringify(mock.doGenerateCalls[0]!.prompt), /called Bruno/);
});
