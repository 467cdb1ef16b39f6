// Field configuration: defaults, overrides, names, colours and texts of values, as Grafana applies them.

import { formatTime, formatValue } from './units.js';
import { interpolate } from './links.js';

/** Give each field its `config`, `displayName` and place in the palette. */
export function configure(frames, panel, scope) {
  const { defaults = {}, overrides = [] } = panel.fieldConfig || {};
  let index = 0;
  for (const frame of frames) {
    for (const field of frame.fields) {
      field.config = structuredClone(defaults);
      field.config.custom ||= {};
      // A series without a value is not shown and takes no colour.
      field.seriesIndex = field.type === 'number' && field.values.some((value) => value !== null) ? index++ : 0;
      field.displayName = nameOf(field, frame, frames, scope);
      for (const { matcher, properties } of overrides) {
        if (!matches(matcher, field)) continue;
        for (const { id, value } of properties) put(field.config, id.split('.'), value);
      }
      field.displayName = nameOf(field, frame, frames, scope);
    }
  }
  unique(frames);
  return frames;
}

function matches({ id, options }, field) {
  if (id === 'byName') return field.name === options || field.displayName === options;
  if (id === 'byType') return field.type === options;
  if (id === 'byRegexp') {
    const found = /^\/(.*)\/([a-z]*)$/s.exec(options);
    return new RegExp(found ? found[1] : options, found ? found[2] : '').test(field.displayName);
  }
  return false;
}

function put(config, path, value) {
  for (const name of path.slice(0, -1)) config = config[name] ||= {};
  config[path.at(-1)] = value;
}

function nameOf(field, frame, frames, scope) {
  if (field.config.displayName) {
    const named = interpolate(field.config.displayName, { ...scope, field, frame }).trim();
    if (named) return named;
  }
  if (field.type === 'time' && !field.labels) return field.name;
  const parts = [];
  if (frame.name) parts.push(frame.name);
  if (field.name && !(frame.name && frame.fields.filter((one) => one.type === 'number').length === 1)) parts.push(field.name);
  if (field.labels) {
    const keys = new Set(frames.flatMap((one) => one.fields.flatMap((each) => Object.keys(each.labels || {}))));
    const values = Object.entries(field.labels).filter(([, value]) => value !== '');
    if (keys.size === 1) parts.push(...values.map(([, value]) => value));
    else if (values.length) parts.push(`{${values.map(([key, value]) => `${key}="${value}"`).join(', ')}}`);
  }
  return parts.join(' ') || field.name;
}

/** Tell series of one name apart. */
function unique(frames) {
  const seen = new Map();
  for (const field of frames.flatMap((frame) => frame.fields)) {
    if (field.type !== 'number') continue;
    const count = (seen.get(field.displayName) || 0) + 1;
    seen.set(field.displayName, count);
    if (count > 1) field.displayName = `${field.displayName} ${count}`;
  }
}

/** Text and colour (by name; null: none of its own) of a value. */
export function display(field, value, fallbackMode = 'thresholds') {
  const { config } = field;
  const mapped = mapping(config.mappings, value);
  const color = mapped?.color || colorOf(field, value, fallbackMode);
  if (mapped?.text !== undefined && mapped.text !== '') return { text: mapped.text, color, mapped: Boolean(mapped.color) };
  const none = value === null || value === undefined || value === '' || Number.isNaN(value);
  if (none) return { text: config.noValue ?? '', color: mapped?.color || 'text', mapped: Boolean(mapped?.color), none };
  if (field.type === 'time' && (!config.unit || /^time|^short|^none/.test(config.unit))) return { text: formatTime(value), color };
  if (field.type === 'boolean') return { text: value ? 'yes' : 'no', color, mapped: Boolean(mapped?.color) };
  return { text: formatValue(value, config.unit || (field.type === 'number' ? 'none' : 'string'), config.decimals), color, mapped: Boolean(mapped?.color) };
}

function colorOf(field, value, fallbackMode) {
  const { mode = fallbackMode, fixedColor } = field.config.color || {};
  if (mode === 'fixed') return fixedColor || 'text';
  if (mode === 'thresholds') return typeof value === 'number' ? thresholdColor(field.config.thresholds, value) : null;
  return `palette-${field.seriesIndex}`;
}

/** Colour of a series as a whole. */
export function seriesColor(field) {
  const { mode = 'palette-classic', fixedColor } = field.config.color || {};
  if (mode === 'fixed') return fixedColor || 'text';
  if (mode === 'thresholds') {
    const last = field.values.findLast?.((value) => typeof value === 'number');
    return thresholdColor(field.config.thresholds, last ?? -Infinity) || 'text';
  }
  return `palette-${field.seriesIndex}`;
}

/** Colour of the highest threshold that the value reaches. */
export function thresholdColor(thresholds, value) {
  let color = null;
  for (const step of thresholds?.steps || []) if (step.value === null || step.value === undefined || value >= step.value) color = step.color;
  return color;
}

function mapping(mappings, value) {
  for (const { type, options } of mappings || []) {
    if (type === 'value') {
      const found = Object.hasOwn(options, String(value)) ? options[String(value)] : null;
      if (found) return found;
    } else if (type === 'range' && typeof value === 'number') {
      if (value >= (options.from ?? -Infinity) && value <= (options.to ?? Infinity)) return options.result;
    } else if (type === 'special') {
      const { match } = options;
      const isNull = value === null || value === undefined;
      const isNan = Number.isNaN(value);
      if ((/null/.test(match) && isNull) || (/nan/.test(match) && isNan) || (match === 'empty' && value === '') || match === String(value)) return options.result;
    }
  }
  return null;
}

const numbersOf = (values) => values.filter((value) => typeof value === 'number' && !Number.isNaN(value));
const CALCS = {
  lastNotNull: (values) => values.findLast((value) => value !== null && value !== undefined && !Number.isNaN(value)) ?? null,
  last: (values) => values.at(-1) ?? null,
  firstNotNull: (values) => values.find((value) => value !== null && value !== undefined) ?? null,
  min: (values) => least(numbersOf(values), Math.min),
  max: (values) => least(numbersOf(values), Math.max),
  mean: (values) => ((found) => (found.length ? found.reduce((a, b) => a + b, 0) / found.length : null))(numbersOf(values)),
  sum: (values) => ((found) => (found.length ? found.reduce((a, b) => a + b, 0) : null))(numbersOf(values)),
  count: (values) => values.length,
};
const least = (values, choose) => (values.length ? values.reduce((a, b) => choose(a, b)) : null);

export const CALC_NAMES = { lastNotNull: 'Last', last: 'Last', firstNotNull: 'First', min: 'Min', max: 'Max', mean: 'Mean', sum: 'Total', count: 'Count' };

/** One number for many. */
export const reduce = (values, calc) => (CALCS[calc] || CALCS.lastNotNull)(values);

/** Fields with numbers, of all frames. */
export const numberFields = (frames) => frames.flatMap((frame) => frame.fields.filter((field) => field.type === 'number'));
