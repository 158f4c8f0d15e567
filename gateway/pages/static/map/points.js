// Loads the clouds, and again until they are settled: columns of JSON in, clouds with typed arrays out.

const SAMPLE = 1500; // Points of the first picture, which is there at once.
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

// Calls `shown` with the clouds now, and while a better layout or vectors are being made.
export async function follow(address, maxPoints, shown, failed) {
  try {
    const sample = await loadClouds(`${address}&limit=${SAMPLE}`);
    shown(sample);
    if (!isUnderWay(sample, SAMPLE) && !sample.some((cloud) => cloud.left_out)) return;
  } catch (error) {
    failed(error);
  }
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(LONGEST_WAIT_MS, wait * 1.5)) {
    try {
      const clouds = await loadClouds(address);
      shown(clouds);
      if (!isUnderWay(clouds, maxPoints)) return;
    } catch (error) {
      failed(error);
    }
    do await new Promise((done) => setTimeout(done, wait));
    while (document.hidden);
  }
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
