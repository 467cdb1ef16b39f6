// Numbers and times as text, by Grafana's units.

const SI = [[1e12, ' T'], [1e9, ' Bil'], [1e6, ' Mil'], [1e3, ' K']];
const SECONDS = [[31536000, ' years'], [604800, ' weeks'], [86400, ' days'], [3600, ' hours'], [60, ' min'], [1, ' s'], [1e-3, ' ms'], [1e-6, ' µs'], [1e-9, ' ns']];
const BYTES = [[2 ** 50, ' PiB'], [2 ** 40, ' TiB'], [2 ** 30, ' GiB'], [2 ** 20, ' MiB'], [2 ** 10, ' KiB']];

/** Text of a value in a unit; null has none. `decimals` undefined: three significant digits. */
export function formatValue(value, unit, decimals, now = Date.now()) {
  if (value === null || value === undefined || value === '') return '';
  if (typeof value !== 'number') return String(value);
  if (!Number.isFinite(value)) return String(value);
  const format = FORMATS[unit || 'short'] || FORMATS.short;
  return format(value, decimals ?? undefined, now);
}

const FORMATS = {
  none: (value, decimals) => fixed(value, decimals),
  string: (value) => String(value),
  short: (value, decimals) => scaled(value, SI, '', decimals),
  percentunit: (value, decimals) => `${fixed(value * 100, decimals)}%`,
  percent: (value, decimals) => `${fixed(value, decimals)}%`,
  s: (value, decimals) => (value === 0 ? '0 s' : scaled(value, SECONDS, ' ns', decimals, 1e-9)),
  ms: (value, decimals) => FORMATS.s(value / 1000, decimals),
  bytes: (value, decimals) => scaled(value, BYTES, ' B', decimals),
  currencyUSD: (value, decimals) => (value < 0 ? '-' : '') + '$' + dollars(Math.abs(value), decimals),
  reqpm: (value, decimals) => `${scaled(value, SI, '', decimals)} per min`,
  dateTimeAsIso: (value) => formatTime(value),
  dateTimeFromNow: (value, _decimals, now) => fromNow(value, now),
};

/** The units that the viewer knows. */
export const UNITS = Object.keys(FORMATS);

function dollars(value, decimals) {
  if (value >= 1000) return scaled(value, SI, '', decimals);
  return value >= 1 && decimals === undefined ? value.toFixed(2) : fixed(value, decimals);
}

function scaled(value, steps, smallest, decimals, least = 1) {
  const size = Math.abs(value);
  for (const [step, suffix] of steps) {
    // 999.6 would round to 1000 of the smaller step.
    if (size >= step * 0.9995) return fixed(value / step, decimals) + suffix;
  }
  return fixed(value / least, decimals) + smallest;
}

/** Three significant digits where nothing else is said, without zeros that say nothing. */
export function fixed(value, decimals) {
  if (decimals !== undefined) return grouped(value.toFixed(decimals));
  if (value === 0) return '0';
  const size = Math.abs(value);
  const digits = Math.max(0, Math.min(12, 2 - Math.floor(Math.log10(size))));
  const text = value.toFixed(digits);
  return grouped(text.includes('.') ? text.replace(/\.?0+$/, '') : text);
}

function grouped(text) {
  const [whole, part] = text.split('.');
  const marked = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  return part === undefined ? marked : `${marked}.${part}`;
}

const two = (number) => String(number).padStart(2, '0');

/** Local date and time, as 2026-03-01 12:00:00. */
export function formatTime(ms) {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return '';
  return `${formatDay(date)} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Local date, as 2026-03-01. */
export function formatDay(date) {
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Local time of day with what the range needs: a date if it is long, seconds if it is short. */
export function formatTick(ms, stepMs) {
  const date = new Date(ms);
  if (stepMs >= 86400000) return `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return stepMs < 60000 ? `${time}:${two(date.getSeconds())}` : time;
}

const decimalsOf = (text) => /\.(\d+)/.exec(text)?.[1].length ?? 0;
const wordsOf = (text) => text.replace(/[\d.,]+/, '#');

/** Texts of an axis: as many decimals for each number where all are in one unit; a zero has none. */
export function tickTexts(ticks, unit) {
  const texts = ticks.map((tick) => formatValue(tick, unit));
  const decimals = Math.max(0, ...texts.map(decimalsOf));
  const units = new Set(texts.filter((_, at) => ticks[at]).map((text) => wordsOf(text.replace('-', ''))));
  return decimals && units.size === 1 ? ticks.map((tick, at) => (tick ? formatValue(tick, unit, decimals) : texts[at])) : texts;
}

/** How long ago, or in how long. */
export function fromNow(ms, now = Date.now()) {
  const seconds = Math.abs(now - ms) / 1000;
  const [size, name] = [[31536000, 'year'], [2592000, 'month'], [86400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second']].find(
    ([step]) => seconds >= step,
  ) || [1, 'second'];
  const count = Math.floor(seconds / size);
  if (seconds < 1) return 'now';
  const words = `${count} ${name}${count === 1 ? '' : 's'}`;
  return ms <= now ? `${words} ago` : `in ${words}`;
}
