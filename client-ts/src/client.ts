import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { EventSourceParserStream } from "eventsource-parser/stream";
import createClient, { type Client } from "openapi-fetch";
import { errorOf, MemoryError } from "./errors.js";
import type { components, paths } from "./openapi.js";
import { Outbox, type StoredTurn, type Turn } from "./outbox.js";

type Schemas = components["schemas"];
/** A turn's reply. With `queued` it waits in the outbox: only `turn_id` is known then. */
export type Remembered = (StoredTurn & { queued: false }) | { turn_id: string | null; queued: true };
export type AnswerPart = { type: "text"; text: string } | { type: "result"; result: Schemas["ModelAnswer"] };
type Fields<Body> = Omit<Body, "query">;

export interface MemoryClientOptions {
  /** A key of the gateway, `ms_…`; one that listens on loopback alone may need none. */
  key?: string;
  /** The user of calls that name none. */
  userId?: string;
  /** The project of turns, and of reads that name none. */
  projectId?: string;
  /** The time that a call may take, with its retries: 10,000 by default. */
  timeoutMs?: number;
  /** A folder of this machine: turns wait in it while the service is away. */
  outbox?: string;
  /** For proxies, certificates and tests. */
  fetch?: typeof globalThis.fetch;
}

/** Whose memory a call is about, and how long it may take. */
export interface CallOptions {
  userId?: string;
  timeoutMs?: number;
  signal?: AbortSignal;
}

type Init = { headers: Record<string, string>; signal: AbortSignal };
type Answered<T> = { data?: T; error?: unknown; response: Response };

const FIRST_PAUSE_MS = 200;
/** The gateway's own timeout error says more than one that is raised here: it gets the time to arrive. */
const MARGIN_MS = 1000;

/**
 * Memory over the gateway. Fields and results have their names on the wire; reads see the earlier writes of this client.
 *
 * Calls are repeated while the gateway is away, until their time is over; a repeated turn has the same id, so it is
 * stored once. Every failure is a `MemoryError`.
 */
export class MemoryClient {
  /** Every route of the gateway, typed; without retries, and with errors as openapi-fetch returns them. */
  readonly api: Client<paths>;
  /** The outbox, if the client has one. */
  readonly outbox: Outbox | undefined;
  readonly #options: MemoryClientOptions;
  readonly #timeoutMs: number;
  /** Places of the last turns, by user. */
  readonly #written = new Map<string, string>();

  constructor(url: string, options: MemoryClientOptions = {}) {
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.api = createClient<paths>({
      baseUrl: url.replace(/\/+$/, ""),
      headers: options.key === undefined ? {} : { Authorization: `Bearer ${options.key}` },
      ...(options.fetch && { fetch: options.fetch }),
    });
    if (options.outbox !== undefined) {
      this.outbox = new Outbox(options.outbox, (userId, turn, signal) => this.#once(userId, turn, this.#timeoutMs, signal));
    }
  }

  /** Store a turn; when this returns, it can be found, or with `queued` it is on disk and will be sent. */
  async remember(content: string, fields: Partial<Omit<Turn, "content">> = {}, call: CallOptions = {}): Promise<Remembered> {
    const userId = this.#user(call);
    const turn = this.#identified({ conversation_id: "default", role: "user", ...fields, content });
    const limit = call.timeoutMs ?? this.#timeoutMs;
    const stored = this.outbox
      ? await this.outbox.remember(userId, turn, limit)
      : await this.#repeat(call, (left, signal) => this.#once(userId, turn, left, signal));
    return stored ? { ...stored, queued: false } : { turn_id: turn.turn_id ?? null, queued: true };
  }

  /** Store turns in their order; an error stands at the place of a turn that was refused, and the others are stored. */
  async rememberAll(turns: Turn[], call: CallOptions = {}): Promise<(Remembered | MemoryError)[]> {
    const results: (Remembered | MemoryError)[] = [];
    for (const { content, ...fields } of turns) {
      results.push(
        await this.remember(content, fields, call).catch((error: MemoryError) => {
          // Otherwise the turn is not at fault, and later ones would be stored without it.
          if (error.status === 413 || error.status === 422) return error;
          throw error;
        }),
      );
    }
    return results;
  }

  /** Search, best hit first. */
  async retrieve(query: string, fields: Fields<Schemas["SearchBody"]> = {}, call: CallOptions = {}): Promise<Schemas["SearchAnswer"]> {
    const path = this.#path(call);
    const body = { ...this.#reading(call), ...fields, query };
    return this.#ask(call, (init) => this.api.POST("/v1/users/{user_id}/memories/search", { ...init, params: { path }, body }));
  }

  /** Build a prompt within a token budget; `messages` end with the question unless `append_query` is false. */
  async assemble(query: string, fields: Fields<Schemas["ContextBody"]> = {}, call: CallOptions = {}): Promise<Schemas["ContextAnswer"]> {
    const path = this.#path(call);
    const body = { ...this.#reading(call), append_query: true, ...fields, query };
    return this.#ask(call, (init) => this.api.POST("/v1/users/{user_id}/contexts", { ...init, params: { path }, body }));
  }

  /** Have the service's language model answer from memory. */
  async answer(query: string, fields: Fields<Schemas["AnswerBody"]> = {}, call: CallOptions = {}): Promise<Schemas["ModelAnswer"]> {
    const path = this.#path(call);
    const body = { ...this.#reading(call), ...fields, query, stream: false };
    return this.#ask<Schemas["ModelAnswer"]>(call, async (init) => {
      const answer = await this.api.POST("/v1/users/{user_id}/answers", { ...init, params: { path }, body });
      return answer as Answered<Schemas["ModelAnswer"]>;
    });
  }

  /** Yield the pieces of an answer's text as the model writes them, then the whole result. */
  async *answerStream(query: string, fields: Fields<Schemas["AnswerBody"]> = {}, call: CallOptions = {}): AsyncGenerator<AnswerPart> {
    const path = this.#path(call);
    const body = { ...this.#reading(call), ...fields, query, stream: true };
    const stream = await this.#ask<ReadableStream<Uint8Array> | null>(call, (init) =>
      this.api.POST("/v1/users/{user_id}/answers", { ...init, params: { path }, body, parseAs: "stream" }),
    );
    const events = stream?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    try {
      for await (const { event, data } of events ?? []) {
        const value = JSON.parse(data);
        if (event === "delta") yield { type: "text", text: value.text };
        else if (event === "error") throw errorOf(value, new Response(null, { status: value.status }));
        else if (event === "done") return void (yield { type: "result", result: value });
      }
    } catch (cause) {
      throw failure(cause, call);
    }
    throw new MemoryError("unavailable", "the answer broke off");
  }

  /** Forget the selected memories for good: one of `memory_id`, `turn_id`, `conversation_id`, `project`, `user`, `filters`. */
  async forget(selection: Schemas["ForgetBody"], call: CallOptions = {}): Promise<Schemas["Forgotten"]> {
    const path = this.#path(call);
    const body = { ...this.#project(), ...selection };
    return this.#ask(call, (init) => this.api.POST("/v1/users/{user_id}/forget", { ...init, params: { path }, body }));
  }

  /** List the modes that the user has declared. */
  async listModes(call: CallOptions = {}): Promise<Schemas["DeclaredModes"]> {
    const params = { path: this.#path(call), query: this.#project() };
    return this.#ask(call, (init) => this.api.GET("/v1/users/{user_id}/modes", { ...init, params }));
  }

  /** Declare or change a mode. */
  async declareMode(name: string, body: Schemas["ModeBody"], call: CallOptions = {}): Promise<Schemas["ShownMode"]> {
    const params = { path: { ...this.#path(call), name } };
    return this.#ask(call, (init) => this.api.PUT("/v1/users/{user_id}/modes/{name}", { ...init, params, body: { ...this.#project(), ...body } }));
  }

  /** Delete a mode; its memories are forgotten, or moved to another one. */
  async deleteMode(name: string, memories: "forget" | `move:${string}`, call: CallOptions = {}): Promise<object> {
    const params = { path: { ...this.#path(call), name }, query: { ...this.#project(), memories } };
    return this.#ask(call, (init) => this.api.DELETE("/v1/users/{user_id}/modes/{name}", { ...init, params }));
  }

  /** Stop sending; turns of the outbox wait for the next client with its folder. */
  async close(): Promise<void> {
    await this.outbox?.close();
  }

  #user(call: CallOptions): string {
    const userId = call.userId ?? this.#options.userId;
    if (userId === undefined) throw new TypeError("name the user: `userId` of the client or of the call");
    return userId;
  }

  #path(call: CallOptions): { user_id: string } {
    return { user_id: this.#user(call) };
  }

  #project(): { project_id?: string } {
    return this.#options.projectId === undefined ? {} : { project_id: this.#options.projectId };
  }

  #reading(call: CallOptions): { project_id?: string; read_after?: string } {
    const read_after = this.#written.get(this.#user(call));
    return { ...this.#project(), ...(read_after !== undefined && { read_after }) };
  }

  /** With an id or a time a turn is the same whenever it is sent. With a time alone the gateway derives the id. */
  #identified(turn: Turn): Turn {
    const isIdentified = turn.turn_id != null || turn.occurred_at != null;
    const identity = isIdentified ? {} : { turn_id: randomUUID(), occurred_at: new Date().toISOString() };
    return { ...this.#project(), ...turn, ...identity };
  }

  async #once(userId: string, turn: Turn, limitMs: number, signal?: AbortSignal): Promise<StoredTurn> {
    const params = { path: { user_id: userId } };
    const stored = (await attempt(limitMs, signal, (init) =>
      this.api.POST("/v1/users/{user_id}/turns", { ...init, params, body: turn }),
    )) as StoredTurn;
    const place = stored.read_after;
    if (place && offsetOf(place) > offsetOf(this.#written.get(userId))) this.#written.set(userId, place);
    return stored;
  }

  #ask<T>(call: CallOptions, send: (init: Init) => Promise<Answered<T>>): Promise<T> {
    return this.#repeat(call, (left, signal) => attempt(left, signal, send));
  }

  /** Try until it succeeds, fails for good, or the call's time is over. */
  async #repeat<T>(call: CallOptions, once: (leftMs: number, signal?: AbortSignal) => Promise<T>): Promise<T> {
    const end = Date.now() + (call.timeoutMs ?? this.#timeoutMs);
    for (let pause = FIRST_PAUSE_MS; ; pause *= 2) {
      try {
        return await once(end - Date.now(), call.signal);
      } catch (error) {
        if (!(error instanceof MemoryError) || !error.retryable) throw error;
        pause = Math.max(pause, error.retryAfterMs);
        if (Date.now() + pause >= end) throw error;
        await sleep(pause, undefined, { signal: call.signal });
      }
    }
  }
}

/** Send a request once. Rejects with a `MemoryError`, or with the reason of the caller's own signal. */
async function attempt<T>(limitMs: number, signal: AbortSignal | undefined, send: (init: Init) => Promise<Answered<T>>): Promise<T> {
  const late = AbortSignal.timeout(Math.max(0, limitMs) + MARGIN_MS);
  // The gateway takes 0.1 to 60 s.
  const seconds = Math.min(Math.max(limitMs / 1000, 0.1), 60);
  try {
    const answer = await send({
      headers: { Prefer: `wait=${seconds}` },
      signal: signal ? AbortSignal.any([signal, late]) : late,
    });
    if (!answer.response.ok || answer.data === undefined) throw errorOf(answer.error, answer.response);
    return answer.data;
  } catch (cause) {
    throw failure(cause, { signal });
  }
}

/** Return the error of a failed request: what `fetch` raises becomes a `MemoryError`. */
function failure(cause: unknown, call: CallOptions): unknown {
  if (cause instanceof MemoryError || call.signal?.aborted) return cause;
  if (cause instanceof DOMException && cause.name === "TimeoutError") {
    return new MemoryError("timeout", "no answer of the gateway in time", { cause });
  }
  // Broken JSON is an answer of something else, or one that broke off.
  return new MemoryError("unreachable", `no answer of the gateway: ${(cause as Error).message}`, { cause });
}

function offsetOf(place: string | undefined): number {
  return place === undefined ? -1 : Number(place.split(":")[1]);
}
