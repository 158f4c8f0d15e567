// Times as the reader says them.

const DAY_MS = 86_400_000;
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });

// "5 min ago" within a day, then "5 Feb, 21:43", with the year where it is another one.
export function shownTime(time, now = new Date()) {
  const ago = now - time;
  if (ago >= 0 && ago < DAY_MS) {
    const minutes = Math.round(ago / 60_000);
    return minutes < 60 ? RELATIVE.format(-minutes, "minute") : RELATIVE.format(-Math.round(minutes / 60), "hour");
  }
  const year = time.getFullYear() === now.getFullYear() ? {} : { year: "numeric" };
  return time.toLocaleString(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", ...year });
}
