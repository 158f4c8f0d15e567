/**
 * Turns on this machine's disk until the service has them.
 *
 * Guaranteed: a turn that `add` has written is stored once, whatever is killed, as long as some process opens the same
 * folder later; the turns that one process adds for one user are stored in their order. A refused turn stays, marked,
 * and blocks no other. Only the owner can read the folder; a file is deleted when its turn was sent.
 *
 * A user has a folder, a turn a file in it. Node has no file locks, so nothing here needs one: several processes may add
 * to a folder and send from it. Two that send the same turn store it once, because of its id, and keep the order,
 * because each waits for the answer to a turn before it sends the next.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MemoryError } from "./errors.js";
import type { components } from "./openapi.js";

export type Turn = components["schemas"]["TurnBody"];
export type StoredTurn = components["schemas"]["StoredTurn"];
/** Sends a turn of a user once; rejects with a `MemoryError`. */
export type Send = (userId: string, turn: Turn, signal: AbortSignal) => Promise<StoredTurn>;
type Waiting = { user_id: string; turn: Turn };
export type Refused = Waiting & { error: string };

const MAX_BYTES = 256 * 1024 * 1024;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** Errors that are not the turn's fault: the key is wrong, or something else answers at the address. */
const OF_THE_WAY = ["unauthenticated", "not_allowed", "unexpected_answer", "closed"];

type Waiter = { resolve: (stored: StoredTurn | undefined) => void; reject: (error: MemoryError) => void };

export class Outbox {
  readonly #spools = new Map<string, Spool>();
  readonly #ending = new AbortController();
  readonly #found: Promise<void>;

  /** Opens the folder and begins to send waiting turns. `maxBytes` bounds the turns of each user. */
  constructor(
    readonly folder: string,
    private readonly send: Send,
    private readonly maxBytes = MAX_BYTES,
  ) {
    this.#found = this.#open();
    // Reported by the first call.
    this.#found.catch(() => undefined);
  }

  /** Write a turn to disk and send it; `undefined` if it still waits after `timeoutMs`. Rejects if it is refused. */
  async remember(userId: string, turn: Turn, timeoutMs: number): Promise<StoredTurn | undefined> {
    const hash = createHash("sha256").update(userId).digest("hex").slice(0, 32);
    // The order of turns is that of the calls: nothing is awaited before the spool has the turn.
    return this.#spool(hash).remember({ user_id: userId, turn }, timeoutMs, this.#found);
  }

  /** Send until nothing waits; false if something still does after `timeoutMs`. */
  async flush(timeoutMs: number): Promise<boolean> {
    await this.#found;
    const end = Date.now() + timeoutMs;
    for (const spool of this.#spools.values()) {
      while ((await spool.names(".json")).length > 0) {
        if (Date.now() >= end || this.#ending.signal.aborted) return false;
        spool.wake();
        await sleep(20);
      }
    }
    return true;
  }

  /** Count the turns that wait, and list the refused ones. */
  async status(): Promise<{ waiting: number; refused: Refused[] }> {
    await this.#found;
    const spools = [...this.#spools.values()];
    const waiting = await Promise.all(spools.map(async (spool) => (await spool.names(".json")).length));
    const refused = await Promise.all(spools.map((spool) => spool.refused()));
    return { waiting: waiting.reduce((sum, count) => sum + count, 0), refused: refused.flat() };
  }

  /** Let refused turns wait again, at their former places. */
  async retryRefused(): Promise<void> {
    await this.#found;
    for (const spool of this.#spools.values()) await spool.retryRefused();
  }

  /** Stop sending; turns that wait stay for the next process. */
  async close(): Promise<void> {
    this.#ending.abort();
    await this.#found.catch(() => undefined);
    await Promise.all([...this.#spools.values()].map((spool) => spool.ended()));
  }

  async #open(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const hashes = (await readdir(this.folder)).filter((name) => /^[0-9a-f]{32}$/.test(name));
    for (const hash of hashes) this.#spool(hash).wake();
  }

  #spool(hash: string): Spool {
    let spool = this.#spools.get(hash);
    if (spool === undefined) {
      spool = new Spool(join(this.folder, hash), this.send, this.maxBytes, this.#ending.signal);
      this.#spools.set(hash, spool);
    }
    return spool;
  }
}

/** The turns of one user. Names of files begin with a number that grows. */
class Spool {
  #adding: Promise<unknown> = Promise.resolve();
  #last = 0;
  /** Counted at the first turn, and again before one is refused: other processes send from here, too. */
  #bytes = Infinity;
  #isDue = false;
  #isAway = false;
  #task: Promise<void> | undefined;
  readonly #waiters = new Map<string, Waiter>();

  constructor(
    private readonly folder: string,
    private readonly send: Send,
    private readonly maxBytes: number,
    private readonly ending: AbortSignal,
  ) {}

  async remember(record: Waiting, timeoutMs: number, ready: Promise<void>): Promise<StoredTurn | undefined> {
    let name = "";
    const answer = new Promise<StoredTurn | undefined>((resolve, reject) => {
      const adding = this.#adding.then(async () => {
        await ready;
        name = await this.#nextName(JSON.stringify(record));
        // It may be sent before its writer knows that it is written.
        this.#waiters.set(name, { resolve, reject });
        await this.#write(name, JSON.stringify(record));
        if (this.#isAway) resolve(undefined);
        this.wake();
        setTimeout(resolve, timeoutMs, undefined).unref();
      });
      this.#adding = adding.catch(reject);
    });
    return answer.finally(() => this.#waiters.delete(name));
  }

  wake(): void {
    this.#isDue = true;
    if (this.ending.aborted) return this.#release();
    this.#task ??= this.#run().finally(() => {
      this.#task = undefined;
      if (this.#isDue) this.wake();
    });
  }

  async ended(): Promise<void> {
    await this.#adding;
    await this.#task;
    this.#release();
  }

  async names(suffix: "" | ".json" | ".refused"): Promise<string[]> {
    const names = await readdir(this.folder).catch(() => []);
    return names.filter((name) => name.endsWith(suffix)).sort();
  }

  async refused(): Promise<Refused[]> {
    const names = await this.names(".refused");
    return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(this.folder, name), "utf8"))));
  }

  async retryRefused(): Promise<void> {
    for (const name of await this.names(".refused")) {
      await rename(join(this.folder, name), join(this.folder, name.replace(/refused$/, "json")));
    }
    this.wake();
  }

  async #nextName(text: string): Promise<string> {
    if (this.ending.aborted) throw new MemoryError("closed", "the client was closed before the turn was stored");
    if (this.#bytes + Buffer.byteLength(text) > this.maxBytes) await this.#count();
    if (this.#bytes + Buffer.byteLength(text) > this.maxBytes) {
      throw new MemoryError("outbox_full", `${this.folder} has ${this.#bytes} bytes of turns`);
    }
    this.#last = Math.max(this.#last + 1, 1000 * Date.now());
    return `${String(this.#last).padStart(16, "0")}-${randomUUID()}.json`;
  }

  async #count(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await sync(dirname(this.folder));
    this.#bytes = 0;
    for (const name of await this.names("")) {
      const path = join(this.folder, name);
      const file = await stat(path).catch(() => undefined);
      this.#bytes += file?.size ?? 0;
      // Behind every turn that is here, even if the clock went back.
      this.#last = Math.max(this.#last, Number.parseInt(name) || 0);
      // Of a process that was killed.
      if (name.endsWith(".tmp") && file && file.mtimeMs < Date.now() - 60_000) await unlink(path).catch(() => undefined);
    }
  }

  /** Write a file so that it is there wholly or not at all, also after a power cut. */
  async #write(name: string, text: string): Promise<void> {
    const draft = join(this.folder, `draft-${randomUUID()}.tmp`);
    const file = await open(draft, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, join(this.folder, name));
    await sync(this.folder);
    this.#bytes += Buffer.byteLength(text);
  }

  async #run(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!this.ending.aborted && (this.#isDue || (await this.names(".json")).length > 0)) {
      this.#isDue = false;
      try {
        for (const name of await this.names(".json")) await this.#sendFile(name);
        pause = FIRST_PAUSE_MS;
      } catch {
        this.#isAway = true;
        this.#release();
        // Turns on disk keep no program alive.
        await sleep(pause, undefined, { ref: false, signal: this.ending }).catch(() => undefined);
        this.#isAway = false;
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    }
  }

  /** Send one file. Rejects if the service can't take it for the moment. */
  async #sendFile(name: string): Promise<void> {
    const path = join(this.folder, name);
    const text = await readFile(path, "utf8").catch(() => undefined);
    // Another process has sent it.
    if (text === undefined) return this.#waiters.get(name)?.resolve(undefined);
    const waiting = JSON.parse(text) as Waiting;
    try {
      const stored = await this.send(waiting.user_id, waiting.turn, this.ending);
      await this.#remove(path, text);
      this.#waiters.get(name)?.resolve(stored);
    } catch (error) {
      if (!(error instanceof MemoryError) || error.retryable || OF_THE_WAY.includes(error.code)) throw error;
      const waiter = this.#waiters.get(name);
      if (!waiter) await this.#write(name.replace(/json$/, "refused"), JSON.stringify({ ...waiting, error: error.message }));
      await this.#remove(path, text);
      waiter?.reject(error);
    }
  }

  async #remove(path: string, text: string): Promise<void> {
    await unlink(path).catch(() => undefined);
    this.#bytes = Math.max(0, this.#bytes - Buffer.byteLength(text));
  }

  #release(): void {
    for (const waiter of this.#waiters.values()) waiter.resolve(undefined);
  }
}

/** Have names in a folder survive a power cut. Windows opens no folders; its file system journals names. */
async function sync(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch(() => undefined);
  await handle?.sync();
  await handle?.close();
}
