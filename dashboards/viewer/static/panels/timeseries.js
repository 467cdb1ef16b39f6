// Lines, bars and points over time.

import { cssColor, faded, markColor, mixed } from '../colors.js';
import { openMenu } from '../dom.js';
import { display, seriesColor } from '../fields.js';
import { legend } from '../legend.js';
import { Plot, valueAxis, valueRange } from '../plot.js';
import { formatTime } from '../units.js';
import { tooltipRows } from '../tooltip.js';

const uPlot = window.uPlot;

/** Draw the frames of a panel; called again with each answer. */
export function draw(view, frames) {
  const { panel, board, state } = view;
  state.hidden ||= new Set();
  const found = seriesOf(frames);
  const filled = found.filter((one) => one.field.values.some((value) => value !== null));
  const all = filled.length ? filled : found; // a series without any value says nothing
  const shown = all.filter((one) => !one.custom.hideFrom?.viz);
  const [times, aligned] = align(shown);
  const { values, order } = stack(shown, aligned, state.hidden);
  const scales = {};
  const axes = [];
  for (const one of shown) addScale(one, scales, axes, panel);
  const drawn = order.map((at) => shown[at]);
  const bands = bandsOf(drawn, state.hidden);
  state.plot ||= new Plot(board);
  const { plot } = state;
  plot.draw({
    data: [times, ...order.map((at) => values[at])],
    series: drawn.map((one) => seriesOptions(one, state.hidden, times.length)),
    scales, bands,
    axes: axes.length ? axes : [valueAxis('y')],
    hooks: { drawClear: [(u) => areas(u, shown)], draw: [(u) => thresholdLines(u, shown)] },
    label: `${panel.title}: ${shown.length} series over time`,
    tooltip: (u, index) => tooltip(u, index, shown, aligned, times, panel, state.hidden, drawn),
    onclick: (u, index, event) => followLinks(view, u, index, event, shown, times),
  });
  const options = panel.options?.legend || {};
  const listed = all.filter((one) => !one.custom.hideFrom?.legend);
  const parts = [plot.root];
  if (options.showLegend !== false && listed.length) parts.push(legend(listed, options, state.hidden, () => draw(view, frames)));
  view.place(parts, options.placement === 'right');
}

function seriesOf(frames) {
  return frames.flatMap((frame) => {
    const time = frame.fields.find((field) => field.type === 'time');
    if (!time) return [];
    return frame.fields.filter((field) => field.type === 'number').map((field) => ({
      field, frame, times: time.values, name: field.displayName, custom: field.config.custom, color: markColor(seriesColor(field)),
    }));
  });
}

/** All series on the times of all frames. */
function align(series) {
  const first = series[0]?.times;
  if (!first) return [[], []];
  if (series.every((one) => one.times === first)) return [first, series.map((one) => one.field.values)];
  const times = [...new Set(series.flatMap((one) => one.times))].sort((a, b) => a - b);
  const at = new Map(times.map((time, index) => [time, index]));
  return [times, series.map((one) => {
    // A time of another query is no gap of this one: undefined is passed over, null is a gap.
    const values = new Array(times.length).fill(undefined);
    one.times.forEach((time, index) => (values[at.get(time)] = one.field.values[index]));
    return values;
  })];
}

const isStacked = (one) => ['normal', 'percent'].includes(one.custom.stacking?.mode);

/** Values to draw and the order to draw them in: of a stack the highest first, so that the lower ones cover it. */
function stack(series, aligned, hidden) {
  const values = [...aligned];
  const sums = {};
  const stacked = [];
  const percent = series.some((one) => one.custom.stacking?.mode === 'percent');
  const totals = percent ? total(series, aligned, hidden) : null;
  series.forEach((one, index) => {
    if (!isStacked(one) || hidden.has(one.name)) return;
    const below = (sums[one.custom.stacking.group || 'A'] ||= new Array(aligned[index].length).fill(0));
    values[index] = aligned[index].map((value, at) => {
      if (value === null || value === undefined) return value;
      below[at] += totals ? value / (totals[at] || 1) : value;
      return below[at];
    });
    stacked.unshift(index);
  });
  const others = series.map((_, index) => index).filter((index) => !stacked.includes(index));
  return { values, order: [...stacked, ...others] };
}

function total(series, aligned, hidden) {
  const sums = new Array(aligned[0].length).fill(0);
  series.forEach((one, index) => {
    if (isStacked(one) && !hidden.has(one.name)) aligned[index].forEach((value, at) => (sums[at] += value || 0));
  });
  return sums;
}

const scaleOf = (one) => `y-${one.custom.axisPlacement === 'right' ? 'right' : 'left'}-${one.field.config.unit || 'short'}`;

function addScale(one, scales, axes, panel) {
  const { config } = one.field;
  const key = scaleOf(one);
  one.scale = key;
  if (key in scales) return;
  const lines = styleOf(one).line || styleOf(one).area ? limits(one) : [];
  const bars = one.custom.drawStyle === 'bars' || isStacked(one);
  scales[key] = { range: valueRange(config.min, config.max, { others: lines, fromZero: bars, unit: config.unit }) };
  if (one.custom.scaleDistribution?.type === 'log') Object.assign(scales[key], { distr: 3, log: one.custom.scaleDistribution.log || 10, range: undefined });
  const right = one.custom.axisPlacement === 'right' || (axes.length > 0 && one.custom.axisPlacement !== 'left');
  axes.push(valueAxis(key, config.unit || 'short', {
    side: right ? 1 : 3, show: one.custom.axisPlacement !== 'hidden', label: one.custom.axisLabel || undefined,
    labelSize: 18, labelFont: '12px system-ui, sans-serif', ...(right && axes.length ? { grid: { show: false } } : {}),
  }));
}

const limits = (one) => (one.field.config.thresholds?.steps || []).map((step) => step.value).filter((value) => typeof value === 'number');

function styleOf(one) {
  const mode = one.custom.thresholdsStyle?.mode || 'off';
  return { line: /line|dashed/.test(mode), area: /area/.test(mode), dashed: /dashed/.test(mode) };
}

function seriesOptions(one, hidden, count) {
  const { custom, color } = one;
  const opacity = (custom.fillOpacity ?? 0) / 100;
  const bars = custom.drawStyle === 'bars';
  const onlyPoints = custom.drawStyle === 'points';
  const solid = isStacked(one) && opacity ? mixed(cssColor('--panel'), color, Math.max(opacity, 0.35)) : null;
  const dash = custom.lineStyle?.fill === 'dash' ? custom.lineStyle.dash || [8, 6] : custom.lineStyle?.fill === 'dot' ? [2, 4] : undefined;
  const paths = bars ? uPlot.paths.bars({ size: [0.8, 60, 1], align: 0, radius: isStacked(one) ? 0 : 0.1 }) : custom.lineInterpolation === 'stepAfter' ? uPlot.paths.stepped({ align: 1 }) : undefined;
  return {
    label: one.name, scale: one.scale, show: !hidden.has(one.name), stroke: color, dash,
    width: onlyPoints ? 0 : bars ? (custom.lineWidth ?? 1) : (custom.lineWidth ?? 1.5),
    fill: custom.fillBelowTo || onlyPoints ? undefined : solid || (opacity ? faded(color, opacity) : undefined),
    paths: onlyPoints ? () => null : paths, spanGaps: custom.spanNulls === true,
    points: { size: custom.pointSize ?? (onlyPoints ? 6 : 5), fill: color, ...pointRule(custom.showPoints, bars, onlyPoints, count) },
  };
}

function pointRule(show, bars, onlyPoints, count) {
  if (onlyPoints || show === 'always') return { show: true };
  if (bars) return { show: false };
  // A value between two gaps has no line: it is shown as a point whatever is chosen.
  const filter = (u, index, all) => (all ? null : lonely(u.data[index]));
  if (show === 'never') return { show: false, filter: (u, index) => lonely(u.data[index]) };
  return count > 1 ? { filter } : { show: true };
}

function lonely(values) {
  const none = (at) => values[at] === null || values[at] === undefined;
  const found = [];
  for (let at = 0; at < values.length; at++) if (!none(at) && none(at - 1) && none(at + 1)) found.push(at);
  return found.length ? found : null;
}

function bandsOf(drawn, hidden) {
  return drawn.flatMap((one, index) => {
    const below = one.custom.fillBelowTo ? drawn.findIndex((other) => other.name === one.custom.fillBelowTo) : -1;
    if (below < 0 || hidden.has(one.name) || hidden.has(drawn[below].name)) return [];
    return [{ series: [index + 1, below + 1], fill: faded(one.color, Math.max(one.custom.fillOpacity ?? 0, 12) / 100) }];
  });
}

/** Shade the bad side of thresholds. */
function areas(u, series) {
  const one = series.find((each) => styleOf(each).area);
  if (!one) return;
  const { ctx, bbox } = u;
  const { steps = [] } = one.field.config.thresholds || {};
  const [low, high] = [u.scales[one.scale].min, u.scales[one.scale].max];
  ctx.save();
  steps.forEach(({ value, color }, index) => {
    if (/green|transparent|text/.test(color)) return; // the good side needs no colour
    const from = Math.max(value ?? -Infinity, low);
    const to = Math.min(steps[index + 1]?.value ?? Infinity, high);
    if (from >= to) return;
    const [top, bottom] = [to, from].map((each) => u.valToPos(each, one.scale, true));
    ctx.fillStyle = faded(markColor(color), 0.08);
    ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
  });
  ctx.restore();
}

function thresholdLines(u, series) {
  const one = series.find((each) => styleOf(each).line);
  if (!one) return;
  const { ctx, bbox } = u;
  const { steps = [] } = one.field.config.thresholds || {};
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  if (styleOf(one).dashed) ctx.setLineDash([7 * devicePixelRatio, 5 * devicePixelRatio]);
  steps.forEach(({ value, color }, index) => {
    if (typeof value !== 'number' || value < u.scales[one.scale].min || value > u.scales[one.scale].max) return;
    const bad = /green|transparent|text/.test(color) ? steps[index - 1]?.color : color;
    const y = u.valToPos(value, one.scale, true);
    ctx.strokeStyle = faded(markColor(bad || color), 0.9);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  });
  ctx.restore();
}

function tooltip(u, index, series, aligned, times, panel, hidden, drawn) {
  const { mode = 'single', sort } = panel.options?.tooltip || {};
  if (mode === 'none' || times[index] === undefined) return null;
  const focused = closest(u, index, drawn);
  let rows = series.flatMap((one, at) => {
    const value = aligned[at][index];
    if (hidden.has(one.name) || one.custom.hideFrom?.tooltip || value === null || value === undefined) return [];
    const { text } = display(one.field, value, 'palette-classic');
    return [{ color: one.color, name: one.name, text, value, strong: one === focused && series.length > 1 }];
  });
  if (mode === 'single' && focused) rows = rows.filter((row) => row.name === focused.name);
  if (sort === 'desc') rows.sort((a, b) => b.value - a.value);
  if (sort === 'asc') rows.sort((a, b) => a.value - b.value);
  const note = rows.length > 20 ? `and ${rows.length - 20} more` : rows.length ? '' : 'no value at this time';
  return tooltipRows(formatTime(times[index]), rows.slice(0, 20), note);
}

function closest(u, index, drawn) {
  let found = null;
  let nearest = Infinity;
  drawn.forEach((one, at) => {
    const value = u.data[at + 1][index];
    if (!u.series[at + 1].show || value === null || value === undefined) return;
    const distance = Math.abs(u.valToPos(value, one.scale) - u.cursor.top);
    if (distance < nearest) [found, nearest] = [one, distance];
  });
  return found;
}

function followLinks(view, u, index, event, series, times) {
  const one = index === null || index === undefined ? null : closest(u, index, series.filter((each) => !view.state.hidden.has(each.name) && each.field.config.links?.length));
  if (!one) return;
  const row = one.times.indexOf(times[index]);
  const value = one.field.values[row];
  const items = view.links(one.field, { frame: one.frame, row, value, text: display(one.field, value).text });
  if (items.length) openMenu(anchorAt(event), items.map(({ title, href }) => ({ text: title, href })), 'Links');
}

function anchorAt({ clientX, clientY }) {
  return { getBoundingClientRect: () => ({ left: clientX, right: clientX, top: clientY, bottom: clientY }), contains: () => false };
}
