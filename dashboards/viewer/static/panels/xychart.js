// Points or lines of one number over another; the series are the frames.

import { faded, markColor } from '../colors.js';
import { openMenu } from '../dom.js';
import { display, seriesColor } from '../fields.js';
import { legend } from '../legend.js';
import { Plot, valueAxis, valueRange } from '../plot.js';
import { tooltipRows } from '../tooltip.js';

export function draw(view, frames) {
  const { panel, board, state } = view;
  state.hidden ||= new Set();
  const series = frames.flatMap((frame) => {
    const [x, y] = frame.fields.filter((field) => field.type === 'number' && !field.config.custom.hidden);
    if (!x || !y) return [];
    return [{ frame, x, y, field: y, name: frame.name || y.displayName, show: y.config.custom.show || 'points' }];
  });
  series.forEach((one, at) => {
    const color = seriesColor(one.y);
    one.color = markColor(color.startsWith('palette-') ? `palette-${at}` : color);
  });
  const shown = series.filter((one) => !state.hidden.has(one.name));
  const xs = shown.flatMap((one) => one.x.values).filter(Number.isFinite);
  const ys = shown.flatMap((one) => one.y.values).filter(Number.isFinite);
  const [first] = series;
  const [xConfig, yConfig] = [first?.x.config || {}, first?.y.config || {}];
  const range = valueRange(xConfig.min, xConfig.max, { unit: xConfig.unit });
  state.plot ||= new Plot(board);
  state.plot.draw({
    x: 'number', xRange: () => range(null, Math.min(...xs), Math.max(...xs)), xUnit: xConfig.unit, xLabel: first?.x.name,
    data: [[...new Set(xs)].sort((a, b) => a - b), [...new Set(xs)].map(() => null)],
    series: [{ scale: 'y', points: { show: false } }],
    scales: { y: { range: () => valueRange(yConfig.min, yConfig.max, { unit: yConfig.unit })(null, Math.min(...ys), Math.max(...ys)) } },
    axes: [valueAxis('y', yConfig.unit, { side: 3, label: first?.y.name, labelSize: 18, labelFont: '12px system-ui, sans-serif' })],
    label: `${panel.title}: ${series.length} series`,
    hooks: { draw: [(u) => shown.forEach((one) => paint(u, one))] },
    tooltip: (u) => {
      const found = nearest(u, shown);
      return found && tell(found);
    },
    onclick: (u, _index, event) => {
      const found = nearest(u, shown);
      if (!found) return;
      const { one, row } = found;
      const items = view.links(one.y, { frame: one.frame, row, value: one.y.values[row], text: display(one.y, one.y.values[row]).text });
      const anchor = { getBoundingClientRect: () => ({ left: event.clientX, top: event.clientY, bottom: event.clientY }), contains: () => false };
      if (items.length) openMenu(anchor, items.map(({ title, href }) => ({ text: title, href })), 'Links');
    },
  });
  const options = panel.options?.legend || {};
  const listed = options.showLegend !== false || series.length > 1 ? [legend(series, { ...options, displayMode: 'list' }, state.hidden, () => draw(view, frames))] : [];
  view.place([state.plot.root, ...listed], options.placement === 'right');
}

function paint(u, { x, y, color, show }) {
  const { ctx } = u;
  const size = 3.5 * devicePixelRatio;
  const places = x.values.map((at, row) => (Number.isFinite(at) && Number.isFinite(y.values[row]) ? [u.valToPos(at, 'x', true), u.valToPos(y.values[row], 'y', true)] : null));
  ctx.save();
  ctx.strokeStyle = color;
  ctx.fillStyle = faded(color, 0.7);
  ctx.lineWidth = 1.5 * devicePixelRatio;
  if (show.includes('lines')) {
    ctx.beginPath();
    let begun = false;
    for (const place of places) {
      if (!place) begun = false;
      else if (begun) ctx.lineTo(...place);
      else ctx.moveTo(...place);
      begun = Boolean(place);
    }
    ctx.stroke();
  }
  if (show.includes('points')) {
    for (const place of places) {
      if (!place) continue;
      ctx.beginPath();
      ctx.arc(place[0], place[1], size, 0, 2 * Math.PI);
      ctx.fill();
      ctx.stroke();
    }
  }
  ctx.restore();
}

function nearest(u, series) {
  let found = null;
  let least = 30;
  for (const one of series) {
    one.x.values.forEach((at, row) => {
      if (!Number.isFinite(at) || !Number.isFinite(one.y.values[row])) return;
      const distance = Math.hypot(u.valToPos(at, 'x') - u.cursor.left, u.valToPos(one.y.values[row], 'y') - u.cursor.top);
      if (distance < least) [found, least] = [{ one, row }, distance];
    });
  }
  return found;
}

function tell({ one, row }) {
  const rows = one.frame.fields.filter((field) => !field.config.custom.hidden).map((field) => ({ name: field.displayName.replace(`${one.frame.name} `, ''), text: display(field, field.values[row]).text }));
  return tooltipRows(one.name, rows);
}
