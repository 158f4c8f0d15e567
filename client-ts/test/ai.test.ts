/** The middleware with models of the AI SDK's own tests, against a running gateway, whose address is in MODESTREAM_URL. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { convertArrayToReadableStream, convertReadableStreamToArray, MockLanguageModelV3 } from "ai/test";
import { modestreamMemory, type MemoryOptions } from "../src/ai.js";
import { MemoryClient } from "../src/index.js";

const url = process.env["MODESTREAM_URL"]!;
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const stop = { finishReason: { unified: "stop" as const, raw: undefined }, usage, warnings: [] };
const said = (text: string) => ({ content: [{ type: "text" as const, text }], ...stop });
/** A client of a new user. */
function client(): { userId: string; memory: MemoryClient } {
  const userId = randomUUID();
  return { userId, memory: new MemoryClient(url, { userId, timeoutMs: 30_000 }) };
}

const withMemory = (model: MockLanguageModelV3, memory: MemoryClient, options: MemoryOptions = {}) =>
  wrapLanguageModel({ model, middleware: modestreamMemory(memory, { waitMs: 30_000, ...options }) });

/** All turns, oldest first. */
async function turns(userId: string): Promise<string[]> {
  const params = { path: { user_id: userId }, query: { order: "oldest" as const, mode: "*" } };
  const { data } = await new MemoryClient(url).api.GET("/v1/users/{user_id}/memories", { params });
  return data!.items.map((item) => `${item.role}: ${item.text}`);
}

/** The prompt of the model's last call, a line for each message. */
function prompt(model: MockLanguageModelV3): string[] {
  const { prompt } = [...model.doGenerateCalls, ...model.doStreamCalls].at(-1)!;
  return prompt.map(({ role, content }) => `${role}: ${typeof content === "string" ? content : content.map((part) => "text" in part ? part.text : part.type).join()}`);
}

test("memories stand between the instructions and the conversation", async () => {
  const { memory } = client();
  await memory.remember("The deploy target is fly.io now.");
  const model = new MockLanguageModelV3({ doGenerate: said("To fly.io.") });
  await generateText({ model: withMemory(model, memory), system: "Be brief.", prompt: "Where do we deploy?" });
  const [system, recalled, ok, question] = prompt(model);
  assert.equal(system, "system: Be brief.");
  assert.match(recalled!, /user: .*\n.*The deploy target is fly.io now\./);
  assert.match(ok!, /assistant: Ok/);
  assert.equal(question, "user: Where do we deploy?");
});

test("a model without memories gets the prompt as it is", async () => {
  const model = new MockLanguageModelV3({ doGenerate: said("Hello.") });
  await generateText({ model: withMemory(model, client().memory), prompt: "Hello?" });
  assert.deepEqual(prompt(model), ["user: Hello?"]);
});

test("question and answer become turns", async () => {
  const { userId, memory } = client();
  const model = withMemory(new MockLanguageModelV3({ doGenerate: said("To fly.io.") }), memory);
  await generateText({ model, prompt: "Where do we deploy?" });
  assert.deepEqual(await turns(userId), ["user: Where do we deploy?", "assistant: To fly.io."]);
});

test("a call that is repeated stores nothing twice", async () => {
  const { userId, memory } = client();
  const model = withMemory(new MockLanguageModelV3({ doGenerate: said("To fly.io.") }), memory);
  for (let call = 0; call < 2; call++) await generateText({ model, prompt: "Where do we deploy?" });
  assert.deepEqual(await turns(userId), ["user: Where do we deploy?", "assistant: To fly.io."]);
});

test("a streamed answer becomes a turn when it is whole", async () => {
  const { userId, memory } = client();
  const parts = [
    { type: "text-start" as const, id: "1" },
    ...["To ", "fly.io."].map((delta) => ({ type: "text-delta" as const, id: "1", delta })),
    { type: "text-end" as const, id: "1" },
    { type: "finish" as const, ...stop },
  ];
  const model = new MockLanguageModelV3({ doStream: async () => ({ stream: convertArrayToReadableStream(parts) }) });
  const { textStream } = streamText({ model: withMemory(model, memory), prompt: "Where do we deploy?" });
  assert.equal((await convertReadableStreamToArray(textStream)).join(""), "To fly.io.");
  assert.deepEqual(await turns(userId), ["user: Where do we deploy?", "assistant: To fly.io."]);
});

test("of an answer that breaks off nothing is stored", async () => {
  const { userId, memory } = client();
  const parts = [{ type: "text-start" as const, id: "1" }, { type: "text-delta" as const, id: "1", delta: "To " }];
  const model = new MockLanguageModelV3({ doStream: async () => ({ stream: convertArrayToReadableStream(parts) }) });
  const { textStream } = streamText({ model: withMemory(model, memory), prompt: "Where do we deploy?", onError: () => undefined });
  await convertReadableStreamToArray(textStream).catch(() => undefined);
  await memory.remember("Last.", { turn_id: "last" });
  assert.ok(!(await turns(userId)).some((turn) => turn.startsWith("assistant")));
});

test("a call with tools stores its question once, and memory repeats nothing of the conversation", async () => {
  const { userId, memory } = client();
  await memory.remember("The spare key is under the third pot.");
  const call = { type: "tool-call" as const, toolCallId: "1", toolName: "look", input: "{}" };
  const model = new MockLanguageModelV3({
    doGenerate: [
      { content: [call], ...stop, finishReason: { unified: "tool-calls", raw: undefined } },
      said("Under the third pot."),
    ],
  });
  const look = tool({ inputSchema: jsonSchema<object>({ type: "object" }), execute: () => "a pot" });
  const asked = { model: withMemory(model, memory), tools: { look }, stopWhen: stepCountIs(2) };
  await generateText({ ...asked, prompt: "Where is the spare key?" });
  assert.equal(prompt(model).join().split("Where is the spare key?").length - 1, 1);
  assert.deepEqual(await turns(userId), [
    "user: The spare key is under the third pot.",
    "user: Where is the spare key?",
    "assistant: Under the third pot.",
  ]);
});

test("a conversation that grows keeps its name", async () => {
  const { memory } = client();
  const model = withMemory(new MockLanguageModelV3({ doGenerate: said("Yes.") }), memory);
  const messages: ModelMessage[] = [{ role: "user", content: "Shall we deploy?" }];
  await generateText({ model, messages });
  await generateText({ model, messages: [...messages, { role: "assistant", content: "Yes." }, { role: "user", content: "Now?" }] });
  const { hits } = await memory.retrieve("x", { mode: "*" });
  assert.equal(new Set(hits.map((hit) => hit.conversation_id)).size, 1);
});

test("a call names its user", async () => {
  const { userId, memory } = client();
  const other = randomUUID();
  const model = withMemory(new MockLanguageModelV3({ doGenerate: said("To fly.io.") }), memory);
  await generateText({ model, prompt: "Where do we deploy?", providerOptions: { modestream: { userId: other } } });
  assert.deepEqual(await turns(userId), []);
  assert.equal((await turns(other)).length, 2);
});

test("no call fails because of memory", async () => {
  const errors: unknown[] = [];
  const away = new MemoryClient("http://127.0.0.1:9", { userId: "u", timeoutMs: 100 });
  const middleware = modestreamMemory(away, { waitMs: 5000 }, (error) => errors.push(error));
  const model = wrapLanguageModel({ model: new MockLanguageModelV3({ doGenerate: said("To fly.io.") }), middleware });
  assert.equal((await generateText({ model, prompt: "Where do we deploy?" })).text, "To fly.io.");
  assert.equal(errors.length, 3);
});
