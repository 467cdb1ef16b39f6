// Bars by category, drawn as elements, so that texts wrap and cells are links.

import { markColor } from '../colors.js';
import { el } from '../dom.js';
import { display, seriesColor } from '../fields.js';
import { legend } from '../legend.js';
import { hideTooltip, showTooltip, tooltipRows } from '../tooltip.js';

const MOST = 200;

export function draw(view, frames) {
  const { panel, state } = view;
  state.hidden ||= new Set();
  const { xField, orientation = 'auto', stacking = 'none', showValue = 'auto' } = panel.options || {};
  const frame = frames[0] || { fields: [], length: 0 };
  const names = frame.fields.find((field) => field.name === xField || field.displayName === xField) || frame.fields.find((field) => field.type !== 'number');
  const series = frame.fields
    .filter((field) => field.type === 'number' && field !== names && !field.config.custom.hidden && !field.config.custom.hideFrom?.viz)
    .map((field) => ({ field, name: field.displayName, mode: field.config.color?.mode || 'palette-classic', color: markColor(seriesColor(field)) }));
  const shown = series.filter((one) => !state.hidden.has(one.name));
  const rows = Array.from({ length: Math.min(frame.length, MOST) }, (_, row) => row);
  const isStacked = stacking !== 'none';
  const sum = (row) => shown.reduce((total, one) => total + Math.max(one.field.values[row] || 0, 0), 0);
  const highest = rows.reduce((max, row) => Math.max(max, isStacked ? sum(row) : Math.max(0, ...shown.map((one) => one.field.values[row] || 0))), 0);
  const most = series[0]?.field.config.max ?? (highest || 1);
  const labels = rows.map((row) => (names ? display(names, names.values[row]).text : String(row + 1)));
  const widest = labels.reduce((longest, label) => Math.max(longest, label.length * 7 + 8), 0);
  const room = Math.max(view.body.clientWidth, 100) / Math.max(rows.length, 1);
  const isScale = labels.every((label) => label !== '' && !Number.isNaN(Number(label))); // of which some labels are enough
  const horizontal = orientation === 'horizontal' || (orientation === 'auto' && !isScale && widest > room);
  const every = isScale && !horizontal ? Math.ceil(widest / room) : 1;
  const groups = rows.map((row) => {
    const label = labels[row];
    const bars = shown.map((one) => bar(view, frame, one, row, stacking === 'percent' ? sum(row) || 1 : most, horizontal, isStacked));
    const told = shown.map((one) => ({ color: barColor(one, row), name: one.name, text: display(one.field, one.field.values[row], 'palette-classic').text || '–' }));
    const total = isStacked || shown.length !== 1 || showValue === 'never' || (!horizontal && room < 44) ? null : el('span', { class: 'bar-value' }, told[0].text);
    const group = el('div', { class: 'bar-group', role: 'listitem', 'aria-label': `${label}: ${told.map((one) => `${one.name} ${one.text}`).join(', ')}` }, el('span', { class: 'bar-label', title: label }, row % every ? '' : label), el('div', { class: `bars ${isStacked ? 'stacked' : ''}` }, bars), total);
    group.addEventListener('pointermove', (event) => showTooltip(group, tooltipRows(label, told), event.clientX, event.clientY));
    group.addEventListener('pointerleave', () => hideTooltip(group));
    return group;
  });
  const options = panel.options?.legend || {};
  const chart = el('div', { class: `barchart ${horizontal ? 'horizontal' : 'vertical'}`, role: 'list', tabIndex: 0, 'aria-label': panel.title }, groups);
  chart.style.setProperty('--label', `${widest}px`);
  const listed = options.showLegend !== false && series.length > 1 ? [legend(series, { ...options, displayMode: 'list' }, state.hidden, () => draw(view, frames))] : [];
  view.place([chart, ...listed], options.placement === 'right');
}

function barColor({ field, mode, color }, row) {
  const value = field.values[row];
  const own = display(field, value, 'palette-classic');
  return mode === 'thresholds' || own.mapped ? markColor(own.color) : color;
}

function bar(view, frame, one, row, most, horizontal, isStacked) {
  const value = one.field.values[row];
  const share = `${100 * Math.min(Math.max((value || 0) / most, 0), 1)}%`;
  const style = { background: barColor(one, row), [horizontal ? 'width' : 'height']: share };
  const link = view.links(one.field, { frame, row, value, text: display(one.field, value).text })[0];
  const made = el(link ? 'a' : 'span', { class: 'bar', style, ...(link ? { href: link.href, 'aria-label': link.title } : {}) });
  return isStacked ? made : el('span', { class: 'bar-slot' }, made);
}
