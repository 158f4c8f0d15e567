/** `node kills.js URL FOLDER FIRST TURNS`: remember turns, print the number of each, and finally send those that wait. */
import { MemoryClient } from "../src/index.js";

const [url, outbox, first, turns] = process.argv.slice(2) as [string, string, string, string];
const memory = new MemoryClient(url, { userId: "ana", outbox, timeoutMs: 2000 });
for (let number = Number(first); number < Number(turns); number++) {
  await memory.remember(`Crate ${number} is in the hall.`, { turn_id: `t-${number}`, conversation_id: "c1" });
  console.log(number);
}
const isSent = await memory.outbox!.flush(240_000);
await memory.close();
process.exitCode = isSent ? 0 : 1;
