import assert from "node:assert/strict";
import { mkdtemp, readdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { MemoryError, Outbox, type StoredTurn, type Turn } from "../src/index.js";

const turn = (number: number): Turn => ({ conversation_id: "c1", role: "user", turn_id: `t-${number}`, content: `Crate ${number}.` });
const folder = () => mkdtemp(join(tmpdir(), "outbox-"));

/** A service that answers as `fail` says, and notes the stored turns. */
class Service {
  fail: MemoryError | undefined;
  readonly stored: string[] = [];
  readonly send = async (userId: string, { turn_id }: Turn): Promise<StoredTurn> => {
    if (this.fail) throw this.fail;
    this.stored.push(`${userId} ${turn_id}`);
    return { memory_id: "m", turn_id: turn_id ?? "", mode: "general", mode_source: "fallback", version: 1, duplicate: false, warnings: [] };
  };
}

const away = () => new MemoryError("unreachable", "away");

test("turns are sent in the order of their calls", async () => {
  const service = new Service();
  const box = new Outbox(await folder(), service.send);
  await Promise.all([0, 1, 2].map((number) => box.remember("ana", turn(number), 5000)));
  await box.close();
  assert.deepEqual(service.stored, ["ana t-0", "ana t-1", "ana t-2"]);
});

test("the answer of a sent turn is returned, and nothing of it stays", async () => {
  const path = await folder();
  const box = new Outbox(path, new Service().send);
  assert.equal((await box.remember("ana", turn(0), 5000))?.turn_id, "t-0");
  await box.close();
  assert.deepEqual(await readdir(join(path, ...(await readdir(path)))), []);
});

test("turns of an outage are sent in order by the next process", async () => {
  const path = await folder();
  const service = new Service();
  service.fail = away();
  const first = new Outbox(path, service.send);
  assert.equal(await first.remember("ana", turn(0), 5000), undefined);
  await first.remember("ana", turn(1), 5000);
  await first.close();
  service.fail = undefined;
  const second = new Outbox(path, service.send);
  await second.remember("ana", turn(2), 5000);
  await second.close();
  assert.deepEqual(service.stored, ["ana t-0", "ana t-1", "ana t-2"]);
});

test("two processes that send the same turns keep their order", async () => {
  const path = await folder();
  const service = new Service();
  service.fail = away();
  const first = new Outbox(path, service.send);
  for (let number = 0; number < 20; number++) await first.remember("ana", turn(number), 5000);
  await first.close();
  service.fail = undefined;
  const boxes = [new Outbox(path, service.send), new Outbox(path, service.send)];
  await Promise.all(boxes.map((box) => box.flush(5000)));
  await Promise.all(boxes.map((box) => box.close()));
  assert.deepEqual([...new Set(service.stored)], Array.from({ length: 20 }, (_, number) => `ana t-${number}`));
});

test("a refused turn rejects its caller, and leaves", async () => {
  const service = new Service();
  service.fail = new MemoryError("unknown_mode", "no such mode");
  const box = new Outbox(await folder(), service.send);
  await assert.rejects(box.remember("ana", turn(0), 5000), { code: "unknown_mode" });
  assert.deepEqual(await box.status(), { waiting: 0, refused: [] });
  await box.close();
});

test("a turn that is refused later stays, blocks no other, and can be sent again", async () => {
  const path = await folder();
  const service = new Service();
  service.fail = away();
  const first = new Outbox(path, service.send);
  await first.remember("ana", turn(0), 5000);
  await first.close();
  service.fail = new MemoryError("unknown_mode", "no such mode");
  const second = new Outbox(path, service.send);
  assert.equal(await second.flush(5000), true);
  assert.deepEqual((await second.status()).refused.map(({ error }) => error), ["unknown_mode: no such mode"]);
  service.fail = undefined;
  await second.remember("ana", turn(1), 5000);
  await second.retryRefused();
  await second.flush(5000);
  await second.close();
  assert.deepEqual(service.stored, ["ana t-1", "ana t-0"]);
});

test("an outbox without room refuses a turn", async () => {
  const box = new Outbox(await folder(), new Service().send, 10);
  await assert.rejects(box.remember("ana", turn(0), 5000), { code: "outbox_full" });
  await box.close();
});

test("sent turns make room", async () => {
  const box = new Outbox(await folder(), new Service().send, 150);
  for (let number = 0; number < 5; number++) assert.ok(await box.remember("ana", turn(number), 5000));
  await box.close();
});

test("only the owner can read waiting turns", async () => {
  const path = await folder();
  const service = new Service();
  service.fail = away();
  const box = new Outbox(path, service.send);
  await box.remember("ana", turn(0), 5000);
  await box.close();
  const [user] = await readdir(path);
  const [file] = await readdir(join(path, user!));
  assert.equal((await stat(join(path, user!, file!))).mode & 0o077, 0);
});

test("the folder does not name the user", async () => {
  const path = await folder();
  const box = new Outbox(path, new Service().send);
  await box.remember("ana", turn(0), 5000);
  await box.close();
  assert.doesNotMatch((await readdir(path)).join(), /ana/);
});

test("a turn after the close is refused", async () => {
  const box = new Outbox(await folder(), new Service().send);
  await box.close();
  await assert.rejects(box.remember("ana", turn(0), 5000), { code: "closed" });
});
