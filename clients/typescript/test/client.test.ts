/** The client against a real server, whose address and token the environment has. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Lukasa, LukasaError } from "../src/index.js";

const url = process.env["LUKASA_URL"]!;
const token = process.env["LUKASA_TOKEN"]!;
const memory = new Lukasa({ url, token });
const world = memory.workspace("novel");

async function refused(call: Promise<unknown>): Promise<LukasaError> {
  const error = await call.then(() => assert.fail("it was not refused"), (error: unknown) => error);
  assert.ok(error instanceof LukasaError, String(error));
  return error;
}

test("what is put is read, changed and forgotten", async () => {
  const put = await world.put("The villain is called Malachar", { tags: ["cast"] });
  assert.equal(put.outcome, "stored");
  const found = await world.read("who is the villain?", { limit: 3 });
  const hit = found.hits[0]!;
  assert.equal(hit.entry.id, put.id);
  assert.equal(hit.entry.content, "The villain is called Malachar");
  const changed = await world.update(put.id!, { importance: 0.9 }, { version: hit.entry.version });
  assert.equal(changed.entry!.importance, 0.9);
  assert.equal((await world.get(put.id!)).version, hit.entry.version + 1);
  await world.forget(put.id!, "out of the story");
  assert.equal((await world.read("who is the villain?")).hits.length, 0);
});

test("a context is a text for a prompt", async () => {
  await world.put("The lighthouse keeper is called Ines");
  const context = await world.context("who keeps the lighthouse?", { budget: 500 });
  assert.match(context.text, /Ines/);
  assert.ok(context.tokens > 0);
});

test("a query carries numbers and truth values", async () => {
  const page = await world.call("memory_list", { limit: 1, everything: true });
  assert.equal(page.entries.length, 1);
});

test("a request with a key is done once", async () => {
  const options = { idempotencyKey: "the same" };
  const first = await world.put("The harbour freezes in winter", {}, options);
  assert.equal((await world.put("The harbour freezes in winter", {}, options)).id, first.id);
});

test("a refusal says what to change", async () => {
  const missing = await refused(world.get("7e0f7a3e-1d6b-4c0e-9d55-0d9c5f3b7a11"));
  assert.deepEqual([missing.status, missing.code], [404, "not-found"]);
  const put = await world.put("The bridge is closed");
  const stale = await refused(world.update(put.id!, { importance: 0.1 }, { version: 99 }));
  assert.deepEqual([stale.status, stale.code], [412, "version-changed"]);
  assert.ok(stale.fix && stale.requestId);
  const stranger = new Lukasa({ url, token: "lks_nobody" });
  assert.equal((await refused(stranger.workspace("novel").read("who?"))).status, 401);
});

test("no server is told apart from a refusal", async () => {
  const nowhere = new Lukasa({ url: "http://127.0.0.1:1", token });
  const error = await refused(nowhere.workspace("novel").read("who?"));
  assert.deepEqual([error.status, error.code], [0, "unreachable"]);
  assert.match(error.message, /lukasa serve/);
});

test("a call can be given up", async () => {
  const given = world.read("who?", {}, { signal: AbortSignal.abort() });
  await assert.rejects(given, { name: "AbortError" });
});

test("a workspace or an id that is missing is an error before anything is sent", async () => {
  assert.throws(() => new Lukasa({ url, token: "" }), /token/);
  await assert.rejects(memory.workspace("").read("who?"), /needs workspace/);
});
