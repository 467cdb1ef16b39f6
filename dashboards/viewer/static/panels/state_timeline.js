// States over time, a row per series; equal states in a row are one block.

import { markColor, paletteColor, readableOn } from '../colors.js';
import { el } from '../dom.js';
import { display } from '../fields.js';
import { formatTime } from '../units.js';
import { tooltipRows } from '../tooltip.js';
import { drawRows } from './rows_over_time.js';

export function draw(view, frames) {
  const { panel, board } = view;
  const words = new Map(); // of states without a colour of their own
  const rows = frames.flatMap((frame) => {
    const time = frame.fields.find((field) => field.type === 'time');
    if (!time) return [];
    return frame.fields.filter((field) => field !== time).map((field) => ({ name: field.displayName, blocks: blocksOf(time.values, field, board.shown.to, words) }));
  });
  const opacity = (panel.fieldConfig?.defaults?.custom?.fillOpacity ?? 85) / 100;
  const plot = drawRows(view, {
    names: rows.map((row) => row.name),
    times: frames[0]?.fields.find((field) => field.type === 'time')?.values || [],
    label: `${panel.title}: ${rows.length} rows of states over time`,
    paint: (u, rowBox) => rows.forEach((row, at) => paintRow(u, row, rowBox(u, at), opacity, panel.options?.showValue ?? 'auto')),
    tooltip: (u, at, time) => tell(rows[at], time),
  });
  const legend = panel.options?.legend?.showLegend === false ? [] : statesOf(rows);
  view.place([plot.root, legend.length ? el('div', { class: 'legend legend-list' }, legend.map(({ text, color }) => el('span', { class: 'legend-item' }, el('span', { class: 'swatch', style: { background: color } }), text))) : null].filter(Boolean));
}

function blocksOf(times, field, end, words) {
  const blocks = [];
  field.values.forEach((value, at) => {
    const last = blocks.at(-1);
    if (last && last.open) last.to = times[at];
    if (value === null || value === undefined) {
      if (last) last.open = false;
      return;
    }
    const { text, color, mapped } = display(field, value);
    if (last?.open && last.text === text) return;
    if (last) last.open = false;
    blocks.push({ from: times[at], to: end, text, color: colorOf(text, color, mapped, words), open: true });
  });
  return blocks;
}

function colorOf(text, color, mapped, words) {
  if (color && (mapped || !color.startsWith('palette-'))) return markColor(color);
  if (!words.has(text)) words.set(text, words.size);
  return paletteColor(words.get(text));
}

function paintRow(u, row, { top, height }, opacity, showValue) {
  const { ctx } = u;
  const gap = Math.min(height * 0.15, 4 * devicePixelRatio);
  for (const { from, to, text, color } of row.blocks) {
    const [left, right] = [from, to].map((at) => u.valToPos(at, 'x', true));
    ctx.globalAlpha = opacity;
    ctx.fillStyle = color;
    ctx.fillRect(left, top + gap, Math.max(right - left - devicePixelRatio, 1), height - 2 * gap);
    ctx.globalAlpha = 1;
    if (showValue === 'never') continue;
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    const room = Math.min(right, u.bbox.left + u.bbox.width) - Math.max(left, u.bbox.left) - 10 * devicePixelRatio;
    if (height < 16 * devicePixelRatio || ctx.measureText(text).width > room) continue;
    ctx.fillStyle = readableOn(color);
    ctx.textBaseline = 'middle';
    ctx.fillText(text, Math.max(left, u.bbox.left) + 5 * devicePixelRatio, top + height / 2);
  }
}

function tell(row, time) {
  const block = row?.blocks.find((one) => one.from <= time && time < one.to);
  if (!block) return row ? tooltipRows(row.name, [], 'no value at this time') : null;
  return tooltipRows(row.name, [{ color: block.color, name: block.text, text: '' }], `${formatTime(block.from)} to ${formatTime(block.to)}`);
}

function statesOf(rows) {
  const found = new Map();
  for (const { blocks } of rows) for (const { text, color } of blocks) found.set(text, color);
  return found.size > 8 ? [] : [...found].map(([text, color]) => ({ text, color }));
}
