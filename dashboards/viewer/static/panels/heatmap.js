// Counts by time and bucket: the darker, the more.

import { cssColor, markColor, mixed } from '../colors.js';
import { el } from '../dom.js';
import { formatTime, formatValue } from '../units.js';
import { tooltipRows } from '../tooltip.js';
import { drawRows } from './rows_over_time.js';

const STEPS = 8;

export function draw(view, frames) {
  const { panel } = view;
  const frame = frames[0] || { fields: [] };
  const times = frame.fields.find((field) => field.type === 'time')?.values || [];
  const buckets = ordered(frame.fields.filter((field) => field.type === 'number'));
  const most = buckets.reduce((max, one) => one.values.reduce((a, b) => Math.max(a, b || 0), max), 0);
  const width = step(times) || 60000;
  const scale = (count) => mixed(cssColor('--panel'), markColor('blue'), 0.12 + 0.88 * Math.sqrt(count / most));
  const { title = 'bucket' } = { title: panel.options?.yAxis?.axisLabel || 'bucket' };
  const unit = panel.fieldConfig?.defaults?.unit || 'short';
  const plot = drawRows(view, {
    names: buckets.map((one) => one.displayName).reverse(),
    times,
    label: `${panel.title}: counts by time and ${buckets.length} buckets`,
    paint: (u, rowBox) => buckets.forEach((one, at) => {
      const { top, height } = rowBox(u, buckets.length - 1 - at);
      one.values.forEach((count, index) => {
        if (!count) return;
        const left = u.valToPos(times[index], 'x', true);
        const right = u.valToPos(times[index] + width, 'x', true);
        u.ctx.fillStyle = scale(count);
        u.ctx.fillRect(left, top + 0.5, Math.max(right - left - devicePixelRatio, 1), Math.max(height - devicePixelRatio, 1));
      });
    }),
    tooltip: (u, row, time) => {
      const one = buckets[buckets.length - 1 - row];
      const index = times.findLastIndex((at) => at <= time);
      if (!one || index < 0 || time >= times[index] + width) return null;
      const rows = [{ name: title, text: one.displayName }, { name: 'count', text: formatValue(one.values[index] || 0, unit), color: scale(one.values[index] || 0) }];
      return tooltipRows(formatTime(times[index]), rows);
    },
  });
  view.place([plot.root, scaleBar(scale, most, unit)]);
}

/** Buckets from low to high where their names begin with numbers, else as they come. */
function ordered(fields) {
  const keys = fields.map((field) => parseFloat(field.displayName));
  if (keys.some(Number.isNaN)) return fields;
  return fields.map((field, at) => ({ field, key: keys[at] })).sort((a, b) => a.key - b.key).map(({ field }) => field);
}

const step = (times) => times.slice(1).reduce((least, at, index) => Math.min(least, at - times[index]), Infinity) % Infinity;

function scaleBar(scale, most, unit) {
  const steps = Array.from({ length: STEPS }, (_, at) => el('span', { style: { background: scale((most * (at + 1)) / STEPS) } }));
  return el('div', { class: 'scale-bar' }, el('span', {}, '1'), el('span', { class: 'scale-steps' }, steps), el('span', {}, formatValue(most, unit)));
}
