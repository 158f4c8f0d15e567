// Which colour each point has, and what the colours mean: the most frequent names, or spans of time.

import { AGES, NAMED } from "./palette.js";

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
