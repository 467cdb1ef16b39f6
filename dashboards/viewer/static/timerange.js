// Time ranges as Grafana writes them: now-6h, now/d, milliseconds since 1970, or a date.

const UNIT_MS = { s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
const RELATIVE = /^now(?:([+-])(\d{1,6})([smhdwMy]))?(?:\/([mhdwMy]))?$/;

export const QUICK = [
  ['now-5m', 'Last 5 minutes'], ['now-15m', 'Last 15 minutes'], ['now-30m', 'Last 30 minutes'], ['now-1h', 'Last hour'],
  ['now-3h', 'Last 3 hours'], ['now-6h', 'Last 6 hours'], ['now-12h', 'Last 12 hours'], ['now-24h', 'Last 24 hours'],
  ['now-2d', 'Last 2 days'], ['now-7d', 'Last 7 days'], ['now-30d', 'Last 30 days'], ['now-90d', 'Last 90 days'],
];

/** Milliseconds of an end of a range; null if it cannot be read. `isEnd` rounds up, to the end of a day and the like. */
export function resolve(text, isEnd, now = Date.now()) {
  const trimmed = String(text).trim();
  if (/^(?:0|\d{8,15})$/.test(trimmed)) return Number(trimmed);
  const found = RELATIVE.exec(trimmed);
  if (found) {
    const date = new Date(now);
    if (found[1]) shift(date, (found[1] === '-' ? -1 : 1) * Number(found[2]), found[3]);
    if (found[4]) round(date, found[4], isEnd);
    return date.getTime();
  }
  const local = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d))?)?$/.exec(trimmed);
  if (local) {
    const [, y, mo, d, h = isEnd ? '23' : '00', mi = isEnd ? '59' : '00', s = isEnd && !local[4] ? '59' : '00'] = local;
    const date = new Date(+y, +mo - 1, +d, +h, +mi, +s);
    return date.getMonth() === +mo - 1 ? date.getTime() : null;
  }
  const parsed = /^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(trimmed) ? Date.parse(trimmed) : NaN;
  return Number.isNaN(parsed) ? null : parsed;
}

function shift(date, count, unit) {
  if (unit === 'M') date.setMonth(date.getMonth() + count);
  else if (unit === 'y') date.setFullYear(date.getFullYear() + count);
  else date.setTime(date.getTime() + count * UNIT_MS[unit]);
}

function round(date, unit, isEnd) {
  date.setSeconds(0, 0);
  if (unit !== 'm') date.setMinutes(0);
  if (unit !== 'm' && unit !== 'h') date.setHours(0);
  if (unit === 'w') date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  if (unit === 'M' || unit === 'y') date.setDate(1);
  if (unit === 'y') date.setMonth(0);
  if (!isEnd) return;
  shift(date, 1, unit);
  date.setTime(date.getTime() - 1);
}

/** The range as milliseconds; null if an end cannot be read or they are in the wrong order. */
export function resolveRange(range, now = Date.now()) {
  const from = resolve(range.from, false, now);
  const to = resolve(range.to, true, now);
  return from === null || to === null || from > to ? null : { from, to };
}

/** Whether the range moves with the clock. */
export const isRelative = (range) => String(range.to).startsWith('now');

/** Step of graphs in seconds: as many points as the panel is wide, rounded as Grafana rounds. */
export function intervalOf(range, points, leastS = 1) {
  const ms = (range.to - range.from) / Math.max(points, 10);
  const steps = [
    [15, 10], [35, 20], [75, 50], [150, 100], [350, 200], [750, 500], [1500, 1000], [3500, 2000], [7500, 5000],
    [12500, 1e4], [17500, 15e3], [25000, 2e4], [45000, 3e4], [90000, 6e4], [210000, 12e4], [450000, 3e5], [750000, 6e5],
    [1050000, 9e5], [1500000, 12e5], [2700000, 18e5], [5400000, 36e5], [9e6, 72e5], [162e5, 108e5], [324e5, 216e5],
    [864e5, 432e5], [6048e5, 864e5], [18144e5, 6048e5], [36288e5, 2592e6],
  ];
  const rounded = (steps.find(([limit]) => ms < limit) || [0, 31536e6])[1];
  return Math.max(Math.round(rounded / 1000), leastS, 1);
}
