// Answers as frames of fields: {name, type, values, labels}. Types: time (ms), number, string, boolean, other.

/** Make a frame of an answer in JSONCompact. `timeSeries`: wide, one field per series, as the plugin makes it. */
export function toFrame(answer, refId, timeSeries) {
  const fields = answer.meta.map(({ name, type }, at) => {
    const kind = kindOf(type, timeSeries);
    return { name, type: kind, labels: null, values: answer.data.map((row) => converted(row[at], kind)) };
  });
  const frame = { refId, name: '', fields, length: answer.data.length };
  return timeSeries ? widened(frame) : frame;
}

function kindOf(type, timeSeries) {
  const plain = type.replace(/(?:Nullable|LowCardinality|SimpleAggregateFunction)\((?:\w+, )?/g, '').replace(/\)+$/, '');
  if (/^(Date|Date32)$/.test(plain)) return timeSeries ? 'time' : 'string';
  if (/^DateTime/.test(plain)) return 'time';
  if (/^(U?Int|Float|BFloat|Decimal)/.test(plain)) return 'number';
  if (plain === 'Bool') return 'boolean';
  return /^(String|FixedString|Enum|UUID|IPv)/.test(plain) || plain === 'Nothing' ? 'string' : 'other';
}

function converted(value, kind) {
  if (value === null) return null;
  if (kind === 'time') return typeof value === 'number' ? value * 1000 : Date.parse(/[TZ]/.test(value) ? value : `${value.replace(' ', 'T')}Z`);
  if (kind === 'number') return typeof value === 'number' ? value : Number(value);
  if (kind === 'other') return typeof value === 'string' ? value : JSON.stringify(value);
  return value;
}

/** Rows of time, labels and numbers as one field per series, aligned by time. */
function widened(frame) {
  const time = frame.fields.find((field) => field.type === 'time');
  const names = frame.fields.filter((field) => field.type === 'string' || field.type === 'other');
  const numbers = frame.fields.filter((field) => field.type === 'number' || field.type === 'boolean');
  const asStates = numbers.length === 0; // a series of words, for a state timeline
  const valued = asStates ? names.splice(-1) : numbers;
  if (!time || !frame.length) return { ...frame, fields: time ? [{ ...time, values: [] }, ...valued.map((one) => ({ ...one, values: [] }))] : [] };
  const times = [...new Set(time.values)].sort((a, b) => a - b);
  if (!names.length && times.length === frame.length) return { ...frame, fields: [time, ...valued] };
  const at = new Map(times.map((one, index) => [one, index]));
  const series = new Map();
  for (let row = 0; row < frame.length; row++) {
    const labels = names.map((field) => field.values[row] ?? '');
    for (const field of valued) {
      const key = JSON.stringify([field.name, ...labels]);
      let one = series.get(key);
      if (!one) {
        const named = names.length ? Object.fromEntries(names.map((name, index) => [name.name, labels[index]])) : null;
        one = { name: field.name, type: field.type, labels: named, values: new Array(times.length).fill(null) };
        series.set(key, one);
      }
      one.values[at.get(time.values[row])] = field.values[row];
    }
  }
  return { ...frame, fields: [{ ...time, values: times }, ...series.values()], length: times.length };
}

/** Transformations of the panel, in order. */
export function transform(frames, transformations) {
  return (transformations || []).reduce((found, { id, options, disabled }) => {
    if (disabled) return found;
    if (id === 'groupingToMatrix') return found.map((frame) => matrix(frame, options));
    if (id === 'partitionByValues') return found.flatMap((frame) => partitioned(frame, options));
    throw new Error(`The viewer does not know the transformation ${id}.`);
  }, frames);
}

const EMPTY = { zero: 0, empty: '', null: null, true: true, false: false };

function matrix(frame, { rowField, columnField, valueField, emptyValue }) {
  const [rows, columns, cells] = [rowField, columnField, valueField].map((name) => frame.fields.find((field) => field.name === name));
  if (!rows || !columns || !cells) return frame;
  const down = [...new Set(rows.values)];
  const across = [...new Set(columns.values)];
  const at = new Map(down.map((value, index) => [value, index]));
  const made = new Map(
    across.map((value) => [value, { name: String(value ?? ''), type: cells.type, labels: null, values: new Array(down.length).fill(EMPTY[emptyValue] ?? '') }]),
  );
  for (let row = 0; row < frame.length; row++) made.get(columns.values[row]).values[at.get(rows.values[row])] = cells.values[row];
  const first = { name: `${rowField}\\${columnField}`, type: rows.type, labels: null, values: down };
  return { ...frame, fields: [first, ...made.values()], length: down.length };
}

function partitioned(frame, { fields: names = [], keepFields = false }) {
  const by = frame.fields.filter((field) => names.includes(field.name));
  if (!by.length) return [frame];
  const groups = new Map();
  for (let row = 0; row < frame.length; row++) {
    const key = JSON.stringify(by.map((field) => field.values[row]));
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  const kept = keepFields ? frame.fields : frame.fields.filter((field) => !by.includes(field));
  return [...groups.values()].map((rows) => ({
    ...frame,
    name: by.map((field) => field.values[rows[0]] ?? '').join(' '),
    fields: kept.map((field) => ({ ...field, values: rows.map((row) => field.values[row]) })),
    length: rows.length,
  }));
}

/** Rows of the frames as text with a tab between cells, for a spreadsheet. */
export function toText(frames) {
  const clean = (value) => String(value ?? '').replace(/[\t\r\n]+/g, ' ');
  const lines = [];
  for (const frame of frames) {
    const shown = frame.fields.filter((field) => !field.config?.custom?.hidden);
    lines.push(shown.map((field) => clean(field.displayName || field.name)).join('\t'));
    for (let row = 0; row < frame.length; row++) {
      lines.push(shown.map((field) => (field.type === 'time' && field.values[row] !== null ? new Date(field.values[row]).toISOString() : clean(field.values[row]))).join('\t'));
    }
  }
  return lines.join('\n');
}
