/** The client against a running gateway, whose address is in MODESTREAM_URL. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { MemoryClient, MemoryError, type MemoryClientOptions, type Turn } from "../src/index.js";

const url = process.env["MODESTREAM_URL"]!;
const NOWHERE = "http://127.0.0.1:9";
const client = (options: MemoryClientOptions = {}) => new MemoryClient(url, { userId: randomUUID(), timeoutMs: 30_000, ...options });
const texts = async (memory: MemoryClient, query: string) => (await memory.retrieve(query)).hits.map((hit) => hit.text);

/** A network that loses the first answer: the gateway has done as it was asked. */
function losing(): typeof fetch {
  let isLost = false;
  return async (input, init) => {
    const answer = await fetch(input, init);
    if (isLost) return answer;
    isLost = true;
    throw new TypeError("the connection was lost");
  };
}

test("a client finds its own writes at once", async () => {
  const memory = client();
  await memory.remember("The deploy target is fly.io now.");
  assert.deepEqual(await texts(memory, "where do we deploy?"), ["The deploy target is fly.io now."]);
});

test("a turn whose answer is lost is sent again, and stored once", async () => {
  const memory = client({ fetch: losing() });
  const stored = await memory.remember("The key is under the third pot.");
  assert.equal("duplicate" in stored && stored.duplicate, true);
  assert.deepEqual(await texts(memory, "where is the key?"), ["The key is under the third pot."]);
});

test("an invalid turn of several costs the others nothing", async () => {
  const turn = (content: string): Turn => ({ conversation_id: "c1", role: "user", content });
  const results = await client().rememberAll([turn("The first crate."), turn(""), turn("The third crate.")]);
  assert.deepEqual(results.map((result) => (result instanceof MemoryError ? result.field : result.queued)), [false, "content", false]);
});

test("a context ends with the question", async () => {
  const memory = client();
  await memory.remember("The deploy target is fly.io now.");
  const context = await memory.assemble("Where do we deploy?", { budget_tokens: 500 });
  assert.deepEqual(context.messages.at(-1), { role: "user", content: "Where do we deploy?" });
});

test("another project is apart", async () => {
  const memory = client({ projectId: "p1" });
  await memory.remember("The deploy target is fly.io now.");
  const { hits } = await memory.retrieve("where do we deploy?", { project_id: "p2" });
  assert.deepEqual(hits, []);
});

test("an answer comes in pieces, then whole", async () => {
  let text = "";
  for await (const part of client().answerStream("Which mode? [[code]]", { conversation_id: "c1" })) {
    if (part.type === "text") text += part.text;
    else assert.equal(part.result.text, text);
  }
  assert.equal(text, '{"mode": "code"}');
});

test("an answer comes at once without a stream", async () => {
  assert.equal((await client().answer("Which mode? [[code]]", { conversation_id: "c1" })).text, '{"mode": "code"}');
});

test("a stream that is refused is an error", async () => {
  await assert.rejects(client().answerStream("").next(), { code: "invalid_value", field: "query" });
});

test("a forgotten turn is not found", async () => {
  const memory = client();
  await memory.remember("The key is under the third pot.", { conversation_id: "c1" });
  assert.equal((await memory.forget({ conversation_id: "c1" })).forgotten, 1);
  assert.deepEqual(await texts(memory, "where is the key?"), []);
});

test("modes are declared, listed, and deleted", async () => {
  const memory = client();
  await memory.declareMode("code", { embedder: "general" });
  assert.ok((await memory.listModes()).modes.some((mode) => mode.name === "code"));
  await memory.deleteMode("code", "forget");
  assert.ok(!(await memory.listModes()).modes.some((mode) => mode.name === "code"));
});

test("an error has a code and a hint", async () => {
  const error = await client().remember("x", { mode: "no-such" }).catch((error: MemoryError) => error);
  assert.ok(error instanceof MemoryError);
  assert.equal(error.code, "unknown_mode");
  assert.equal(error.retryable, false);
  assert.match(error.hint ?? "", /declareMode/);
});

test("a gateway that is away is worth another attempt", async () => {
  const error = await new MemoryClient(NOWHERE, { userId: "u", timeoutMs: 500 }).retrieve("x").catch((error: MemoryError) => error);
  assert.ok(error instanceof MemoryError);
  assert.equal(error.code, "unreachable");
  assert.equal(error.retryable, true);
});

test("an answer of another service is unexpected", async () => {
  const page: typeof fetch = async () => new Response("<html>Not found</html>", { status: 404 });
  await assert.rejects(client({ fetch: page }).retrieve("x"), { code: "unexpected_answer", status: 404 });
});

test("the caller's own signal ends a call", async () => {
  await assert.rejects(client().retrieve("x", {}, { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
});

test("a turn for a gateway that is away is queued, and sent by the next client", async () => {
  const outbox = await mkdtemp(join(tmpdir(), "outbox-"));
  const userId = randomUUID();
  const first = new MemoryClient(NOWHERE, { userId, outbox });
  assert.equal((await first.remember("The key is under the third pot.")).queued, true);
  await first.close();
  const second = client({ userId, outbox });
  assert.equal(await second.outbox?.flush(60_000), true);
  assert.deepEqual(await texts(second, "where is the key?"), ["The key is under the third pot."]);
  await second.close();
});
