// Groups of a cloud, and which colour each point has.

import { AGES, NAMED } from "./canvas.js";

// Groups of a cloud: hills of its density on a grid, each named by two words that its texts have and others lack.
let SIDE = 26; // Cells of the grid on each axis; fewer where there are few points.
const MOST = 10; // Groups of a cloud; points of smaller ones are in none.
const LEAST_SHARE = 0.03;
const COMMON = new Set(`a about after all also am an and any are as at be been but by can could did do does for from get got had has have he her
  here him his how i if in into is it its just like me more my no not now of on one or our out really she so some than that the their them then there they
  this to up us was we well were what when which who will with would yes you your aber als am an auch auf aus bei bin das dass dem den der des die dir du
  ein eine einen er es für hat habe ich ihr im in ist ja kann mal man mein mich mir mit nach nicht noch nur oder schon sehr sich sie sind so über um und uns
  von vor war was wenn wie wir wird zu zum zur`.split(/\s+/));

// Adds `group` to clouds, as columns of names are: {names, of}; "" for the points in none.
export function withGroups(clouds) {
  for (const cloud of clouds) cloud.group ??= groupsOf(cloud);
  return clouds;
}

function groupsOf(cloud) {
  const count = cloud.ids.length;
  SIDE = Math.max(4, Math.min(26, Math.round(Math.sqrt(count))));
  const hills = hillsOf(cloud);
  const sizes = new Map();
  for (const hill of hills) sizes.set(hill, (sizes.get(hill) ?? 0) + 1);
  const least = Math.max(3, count * LEAST_SHARE);
  const kept = [...sizes].filter(([, size]) => size >= least).sort(([, a], [, b]) => b - a).slice(0, MOST).map(([hill]) => hill);
  const numbers = new Map(kept.map((hill, number) => [hill, number + 1]));
  const of = Uint16Array.from(hills, (hill) => numbers.get(hill) ?? 0);
  return { names: ["", ...namesOf(cloud, of, kept.length)], of: [...of] };
}

// The highest cell that is reached by climbing, for each point.
function hillsOf({ places, ids }) {
  const cells = new Uint32Array(ids.length), density = new Float64Array(SIDE * SIDE);
  let [left, right, bottom, top] = [1, -1, 1, -1];
  for (let i = 0; i < ids.length; i++) {
    left = Math.min(left, places[2 * i]), right = Math.max(right, places[2 * i]);
    bottom = Math.min(bottom, places[2 * i + 1]), top = Math.max(top, places[2 * i + 1]);
  }
  const cellOf = (value, from, to) => Math.min(SIDE - 1, Math.floor(((value - from) / (to - from || 1)) * SIDE));
  for (let i = 0; i < ids.length; i++) {
    cells[i] = cellOf(places[2 * i + 1], bottom, top) * SIDE + cellOf(places[2 * i], left, right);
    density[cells[i]]++;
  }
  const smooth = smoothed(smoothed(density));
  const peaks = new Int32Array(SIDE * SIDE).fill(-1);
  const climb = (cell) => {
    if (peaks[cell] >= 0) return peaks[cell];
    const best = around(cell).reduce((high, next) => (smooth[next] > smooth[high] ? next : high), cell);
    return (peaks[cell] = best === cell ? cell : climb(best));
  };
  return Array.from(cells, climb);
}

function around(cell) {
  const x = cell % SIDE, y = Math.floor(cell / SIDE), cells = [];
  for (let dy = -1; dy <= 1; dy++) for (let dx = -1; dx <= 1; dx++) {
    if (x + dx >= 0 && x + dx < SIDE && y + dy >= 0 && y + dy < SIDE) cells.push((y + dy) * SIDE + x + dx);
  }
  return cells;
}

function smoothed(density) {
  return density.map((value, cell) => around(cell).reduce((sum, next) => sum + density[next], 3 * value));
}

function namesOf(cloud, of, count) {
  const everywhere = new Map(), inGroup = Array.from({ length: count + 1 }, () => new Map());
  cloud.text.forEach((text, row) => {
    const words = new Set(text.toLowerCase().match(/\p{L}{3,}/gu)?.filter((word) => !COMMON.has(word)));
    for (const word of words) {
      everywhere.set(word, (everywhere.get(word) ?? 0) + 1);
      inGroup[of[row]].set(word, (inGroup[of[row]].get(word) ?? 0) + 1);
    }
  });
  const taken = new Set();
  return inGroup.slice(1).map((words, at) => {
    const told = ([word, times]) => times * Math.log(1 + (cloud.ids.length * times) / (everywhere.get(word) ** 2));
    const best = [...words].filter(([word]) => !taken.has(word)).sort((a, b) => told(b) - told(a)).slice(0, 2).map(([word]) => word);
    best.forEach((word) => taken.add(word));
    return best.join(", ") || `group ${at + 1}`;
  });
}

// Which colour each point has, and what the colours mean: the most frequent names, or spans of time.
// Returns {byAge, entries: [{label, count}], of(cloud) → number of a colour for each point}.
export function colouring(kind, clouds) {
  return kind === "age" ? byAge(clouds) : byName(kind, clouds);
}

function byName(kind, clouds) {
  const counts = new Map();
  for (const cloud of clouds) {
    for (const number of cloud[kind].of) {
      const name = cloud[kind].names[number];
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const isRest = (name) => kind === "group" && name === "";
  const ordered = [...counts].sort(([a, m], [b, n]) => isRest(a) - isRest(b) || n - m || (a < b ? -1 : 1));
  const named = ordered.filter(([name]) => !isRest(name)).slice(0, NAMED);
  const numbers = new Map(named.map(([name], number) => [name, number]));
  const entries = named.map(([name, count]) => ({ label: name || "no " + kind, count }));
  const others = ordered.slice(named.length);
  const count = others.reduce((sum, [, n]) => sum + n, 0);
  // The colour behind the named ones, whatever their number is.
  if (count) entries.push({ label: kind === "group" ? "others" : `${others.length} others`, count, number: NAMED });
  const of = (cloud) => {
    const byNumber = cloud[kind].names.map((name) => numbers.get(name) ?? NAMED);
    return Uint8Array.from(cloud[kind].of, (number) => byNumber[number]);
  };
  return { byAge: false, entries, of };
}

// Spans with about the same number of points each, so that a map of one evening has colours too.
function byAge(clouds) {
  const times = Float64Array.from(clouds.flatMap((cloud) => cloud.at)).sort();
  const ends = [];
  for (let part = 1; part <= AGES && times.length; part++) {
    const end = times[Math.ceil((part * times.length) / AGES) - 1];
    if (end !== ends.at(-1)) ends.push(end);
  }
  const spanOf = (time) => Math.min(ends.length - 1, ends.findIndex((end) => time <= end));
  const counts = ends.map(() => 0);
  for (const time of times) counts[spanOf(time)]++;
  const entries = ends.map((end, at) => ({ label: span(at ? ends[at - 1] : times[0], end), count: counts[at] }));
  return { byAge: true, entries, of: (cloud) => Uint8Array.from(cloud.at, spanOf) };
}

function span(from, to) {
  const isShort = to - from < 2 * 86400;
  const format = new Intl.DateTimeFormat(undefined, isShort ? { dateStyle: "medium", timeStyle: "short" } : { dateStyle: "medium" });
  return format.formatRange(new Date(from * 1000), new Date(to * 1000));
}
