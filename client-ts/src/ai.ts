import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { LanguageModelMiddleware } from "ai";
import type { MemoryClient } from "./client.js";

type Params = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
type Message = Params["prompt"][number];
type Streamed = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;
type Part = Streamed["stream"] extends ReadableStream<infer T> ? T : never;

/** Options of the middleware; those of a call stand in its `providerOptions.modestream`. */
export interface MemoryOptions {
  /** The user; default: that of the client. */
  userId?: string;
  /** The conversation; default: a name derived from the instructions and the first user message. */
  conversationId?: string;
  projectId?: string;
  mode?: string;
  /** The tokens that memories may take: 2,000 by default. */
  budgetTokens?: number;
  /** The time that a call may wait for memory, before it and after it: 1,000 by default. */
  waitMs?: number;
  /** Whether question and answer become turns. */
  store?: boolean;
}

const DEFAULTS = { budgetTokens: 2000, waitMs: 1000, store: true };
const MAX_TURN = /[\s\S]{1,32768}/gu;

/**
 * Memory for a language model of the AI SDK: memories about the last user message stand before the conversation's own
 * messages, and question and answer become turns. The ids of turns are made of conversation and place, so that a call
 * that is repeated stores nothing twice. No call fails because of memory: its errors go to `onError`.
 */
export function modestreamMemory(
  memory: MemoryClient,
  options: MemoryOptions = {},
  onError: (error: unknown) => void = (error) => console.warn("modestream:", error),
): LanguageModelMiddleware {
  const exchanges = new WeakMap<object, Exchange>();
  return {
    specificationVersion: "v3",

    async transformParams({ params }) {
      const own = params.providerOptions?.["modestream"] as MemoryOptions | undefined;
      const exchange = new Exchange(memory, { ...DEFAULTS, ...options, ...own }, params.prompt, onError);
      const start = params.prompt.findIndex((message) => message.role !== "system");
      const recalled = await exchange.recall(params.abortSignal);
      const prompt = params.prompt.toSpliced(start < 0 ? params.prompt.length : start, 0, ...recalled);
      const transformed = { ...params, prompt };
      exchanges.set(transformed, exchange);
      return transformed;
    },

    async wrapGenerate({ doGenerate, params }) {
      const exchange = exchanges.get(params);
      exchange?.storeQuestion();
      const result = await doGenerate();
      const texts = result.content.map((part) => (part.type === "text" ? part.text : ""));
      if (result.finishReason.unified !== "error") await exchange?.storeAnswer(texts.join(""));
      return result;
    },

    async wrapStream({ doStream, params }) {
      const exchange = exchanges.get(params);
      exchange?.storeQuestion();
      const { stream, ...rest } = await doStream();
      let text = "";
      let isWhole = false;
      const recorder = new TransformStream<Part, Part>({
        transform(part, controller) {
          if (part.type === "text-delta") text += part.delta;
          if (part.type === "finish") isWhole = part.finishReason.unified !== "error";
          controller.enqueue(part);
        },
        async flush() {
          // Of an answer that broke off nothing is stored.
          if (isWhole) await exchange?.storeAnswer(text);
        },
      });
      return { stream: stream.pipeThrough(recorder), ...rest };
    },
  };
}

/** One call of a model: its question, and the turns made of it. */
class Exchange {
  readonly #spoken: Message[];
  readonly #question: string;
  readonly #questionNumber: number;
  readonly #conversation: string;
  #storing: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly memory: MemoryClient,
    private readonly options: MemoryOptions & typeof DEFAULTS,
    prompt: Message[],
    private readonly onError: (error: unknown) => void,
  ) {
    this.#spoken = prompt.filter((message) => message.role !== "system");
    this.#questionNumber = this.#spoken.findLastIndex((message) => message.role === "user");
    this.#question = textOf(this.#spoken[this.#questionNumber]);
    const instructions = prompt.filter((message) => message.role === "system").map(textOf);
    const first = textOf(this.#spoken.find((message) => message.role === "user"));
    this.#conversation = options.conversationId ?? `ai-${digest([instructions, first])}`;
  }

  /** Return the messages with memories about the question; none if memory has nothing, is away, or late. */
  async recall(abortSignal: AbortSignal | undefined): Promise<Message[]> {
    if (this.#question === "") return [];
    const late = AbortSignal.timeout(this.options.waitMs);
    try {
      const context = await this.memory.assemble(
        // The end of a long message states the question more often than its beginning.
        [...this.#question].slice(-32_768).join(""),
        { ...this.#place(), budget_tokens: this.options.budgetTokens, append_query: false },
        { ...this.#user(), signal: abortSignal ? AbortSignal.any([abortSignal, late]) : late },
      );
      const content = context.messages.find((message) => message.role === "user")?.content ?? "";
      const text = context.references.length > 0 ? withoutShown(content, this.#spoken.map(textOf)) : undefined;
      if (text === undefined) return [];
      const ok = context.messages.at(-1)?.content ?? "Ok";
      return [
        { role: "user", content: [{ type: "text", text }] },
        { role: "assistant", content: [{ type: "text", text: ok }] },
      ];
    } catch (error) {
      this.onError(error);
      return [];
    }
  }

  /** Begin to store the question; at later steps of a call with tools it is stored already. */
  storeQuestion(): void {
    if (this.#spoken.at(-1)?.role === "user") this.#store("user", this.#question, this.#questionNumber);
  }

  /** Store the answer behind the question; return when both are stored, or the time for it is over. */
  async storeAnswer(text: string): Promise<void> {
    this.#store("assistant", text, this.#spoken.length);
    await Promise.race([this.#storing, sleep(this.options.waitMs, undefined, { ref: false })]);
  }

  #store(role: "user" | "assistant", text: string, number: number): void {
    if (!this.options.store) return;
    const occurred_at = new Date().toISOString();
    for (const [piece, content] of (text.match(MAX_TURN) ?? []).entries()) {
      // Made of the question, so that another answer to it replaces the former one.
      const turn_id = `ai-${digest([this.#conversation, number, role, this.#question, piece])}`;
      const turn = { ...this.#place(), turn_id, role, occurred_at };
      this.#storing = this.#storing.then(() => this.memory.remember(content, turn, this.#user())).catch(this.onError);
    }
  }

  #place() {
    const { projectId, mode } = this.options;
    return { conversation_id: this.#conversation, ...(projectId && { project_id: projectId }), ...(mode && { mode }) };
  }

  #user() {
    return this.options.userId === undefined ? {} : { userId: this.options.userId };
  }
}

function textOf(message: Message | undefined): string {
  if (message === undefined) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** Return a context without turns that the conversation shows anyway; `undefined` if nothing is left. */
function withoutShown(content: string, texts: string[]): string | undefined {
  // A line of explanation, then JSON: days with their turns, each ending in its text.
  const start = content.indexOf("\n") + 1;
  const context = JSON.parse(content.slice(start)) as { memories: Record<string, string[]> };
  const shown = texts.filter((text) => text !== "");
  const days = Object.entries(context.memories).map(([day, turns]) => [
    day,
    turns.filter((turn) => !shown.some((text) => turn.endsWith(`: ${text}`))),
  ] as const);
  const left = days.filter(([, turns]) => turns.length > 0);
  if (left.length === 0) return undefined;
  return content.slice(0, start) + JSON.stringify({ ...context, memories: Object.fromEntries(left) });
}

function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 40);
}
