// Loads the clouds, and again until they are settled, then the points beyond one answer: columns of JSON in, clouds with
// typed arrays out.

export const MOST = 100000; // Points of a map: the service keeps the places of as many.
const FIRST_LOOK_MS = 250; // The sample is drawn before the other points are requested.
const FIRST_WAIT_MS = 2000;
const LONGEST_WAIT_MS = 30000;

export async function loadClouds(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(await sentence(answer));
  return (await answer.json()).clouds.map(decode);
}

// A name of a cloud that stays when it is loaded again.
export function keyOf(cloud) {
  return `${cloud.mode} ${cloud.space}`;
}

// Calls `shown` with the clouds now, and while a better layout or vectors are being made. What one answer leaves out is
// read once `closer()` resolves: from afar, a sample of every conversation looks the same.
export async function follow(address, { firstPoints, maxPoints }, shown, failed, closer) {
  try {
    const sample = await loadClouds(`${address}&limit=${firstPoints}`);
    shown(sample);
    if (!isUnderWay(sample, firstPoints) && !sample.some((cloud) => cloud.left_out)) return;
    await pause(FIRST_LOOK_MS);
  } catch (error) {
    failed(error);
  }
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(LONGEST_WAIT_MS, wait * 1.5)) {
    try {
      const clouds = await loadClouds(address);
      const hasRest = !isUnderWay(clouds, maxPoints) && clouds.some((cloud) => cloud.left_out);
      shown(clouds, hasRest);
      if (hasRest) {
        await closer(clouds);
        shown(await withRest(address, clouds, maxPoints, failed));
      }
      if (!isUnderWay(clouds, maxPoints)) return;
    } catch (error) {
      failed(error);
    }
    await pause(wait);
  }
}

// Returns the clouds with all their points, at most MOST: one request for each span of time, the latest first. Until the
// last one is there the sample is shown: groups and colours change once.
async function withRest(address, clouds, maxPoints, failed) {
  const total = clouds.reduce((sum, { ids, left_out }) => sum + ids.length + left_out, 0);
  const times = Float64Array.from(clouds.flatMap(({ at }) => at)).sort();
  const parts = Math.ceil((1.5 * total) / maxPoints); // The sample tells the times of all only roughly.
  const cuts = [...new Set(Array.from({ length: parts - 1 }, (_, part) => times[Math.floor(((part + 1) * times.length) / parts)]))];
  const spans = [null, ...cuts].map((since, at) => [since, cuts[at] ?? null]);
  const read = [];
  let drawn = 0;
  while (spans.length && drawn < MOST) {
    const [since, until] = spans.pop();
    try {
      const part = await loadClouds(address + limitOf("since", since) + limitOf("until", until));
      const own = Float64Array.from(part.flatMap(({ at }) => at)).sort();
      const middle = own[own.length >> 1];
      if (own.length >= maxPoints && middle > (since ?? -Infinity)) {
        spans.push([since, middle], [middle, until]);
        continue;
      }
      read.push(...part);
      drawn += own.length;
    } catch (error) {
      failed(error);
      spans.push([since, until]);
      await pause(FIRST_WAIT_MS);
    }
  }
  return clouds.map((cloud) => joined(cloud, read.filter((part) => keyOf(part) === keyOf(cloud))));
}

function limitOf(name, seconds) {
  return seconds === null ? "" : `&${name}=${new Date(1000 * seconds).toISOString()}`;
}

function joined(cloud, parts) {
  const all = (name) => parts.flatMap((part) => part[name]);
  const ids = all("ids");
  const names = { conversation: named(parts, "conversation"), type: named(parts, "type") };
  const left_out = Math.max(0, cloud.ids.length + cloud.left_out - ids.length);
  return decode({ ...cloud, ids, x: all("x"), y: all("y"), at: all("at"), text: all("text"), ...names, left_out, group: undefined });
}

function named(parts, column) {
  const numbers = new Map();
  const numberOf = (name) => numbers.get(name) ?? (numbers.set(name, numbers.size), numbers.size - 1);
  const of = parts.flatMap((part) => {
    const here = part[column].names.map(numberOf);
    return part[column].of.map((number) => here[number]);
  });
  return { names: [...numbers.keys()], of };
}

async function pause(wait) {
  do await new Promise((done) => setTimeout(done, wait));
  while (document.hidden);
}

export function isUnderWay(clouds, maxPoints) {
  const drawn = clouds.reduce((sum, cloud) => sum + cloud.ids.length, 0);
  return clouds.some((cloud) => !cloud.settled || (cloud.left_out > 0 && drawn < maxPoints));
}

function decode(cloud) {
  const places = new Float32Array(2 * cloud.ids.length);
  for (let i = 0; i < cloud.ids.length; i++) {
    places[2 * i] = cloud.x[i];
    places[2 * i + 1] = cloud.y[i];
  }
  return { ...cloud, places, rowOf: new Map(cloud.ids.map((id, row) => [id, row])) };
}

async function sentence(answer) {
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return page.querySelector(".error")?.textContent?.trim() || `the points could not be loaded (${answer.status})`;
}
