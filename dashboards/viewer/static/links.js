// Links of dashboards and cells: Grafana's macros filled in.

import { formatTime } from './units.js';

/** Encode as Grafana's percentencode: all but letters, digits and -_.~ */
export const percentEncode = (text) =>
  encodeURIComponent(String(text).toWellFormed?.() ?? String(text)).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

const MACRO = /\$\{(__data\.fields\["[^"]*"\]|__data\.fields\['[^']*'\]|__field\.labels\["[^"]*"\]|[^}:]+)(?::(\w+))?\}/g;

/**
 * Fill in `${name}` and `${name:format}`. `scope`: {variables, range, uid}, and what the link stands on: {field, frame,
 * row, value, text}. An unknown name stays.
 */
export function interpolate(template, scope) {
  return String(template).replace(MACRO, (whole, name, format) => {
    const found = valueOf(name, scope);
    return found === undefined ? whole : formatted(name, found, format);
  });
}

/** `name=value` pairs of variables for an address. */
export function variableParameters(variables, names = Object.keys(variables)) {
  return names.filter((name) => name in variables && name !== 'datasource').map((name) => queryParameter(name, variables[name])).filter(Boolean).join('&');
}

function queryParameter(name, value) {
  const values = Array.isArray(value) ? value : [value];
  return values.map((one) => `var-${encodeURIComponent(name)}=${percentEncode(one)}`).join('&');
}

function valueOf(name, scope) {
  const { variables = {}, range = {}, uid, field, frame, row } = scope;
  if (name === '__url_time_range') return `from=${percentEncode(range.from)}&to=${percentEncode(range.to)}`;
  if (name === '__all_variables') return variableParameters(variables);
  if (name === '__dashboard.uid' || name === '__dashboard') return uid ?? '';
  if (name === '__from' || name === '__to') return range[name.slice(2)];
  if (name.startsWith('__data.fields')) {
    const wanted = quoted(name) ?? name.slice('__data.fields.'.length);
    const found = frame?.fields.find((one) => one.name === wanted || one.displayName === wanted);
    return found && row !== undefined ? found.values[row] ?? '' : '';
  }
  if (name.startsWith('__field.labels')) return field?.labels?.[quoted(name) ?? name.slice('__field.labels.'.length)] ?? '';
  if (name === '__field.labels') return Object.entries(field?.labels || {}).map(([key, value]) => `${key}="${value}"`).join(', ');
  if (name === '__field.name') return field?.name ?? '';
  if (name === '__field.displayName' || name === '__series.name') return field?.displayName ?? field?.name ?? '';
  if (name === '__value.raw' || name === '__value.numeric') return scope.value ?? '';
  if (name === '__value.text' || name === '__value') return scope.text ?? scope.value ?? '';
  if (name === '__value.time') {
    const time = frame?.fields.find((one) => one.type === 'time');
    return time && row !== undefined ? time.values[row] ?? '' : '';
  }
  return Object.hasOwn(variables, name) ? variables[name] : undefined;
}

const quoted = (name) => /\[["'](.*)["']\]$/.exec(name)?.[1];

function formatted(name, value, format) {
  if (format === 'queryparam') return queryParameter(name, value);
  if (format === 'percentencode') return percentEncode(Array.isArray(value) ? `{${value.join(',')}}` : value);
  if (format === 'date') return formatTime(Number(value));
  if (Array.isArray(value)) return value.length > 1 ? `{${value.join(',')}}` : value.join('');
  return String(value);
}
