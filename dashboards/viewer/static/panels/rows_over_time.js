// What state timelines and heat maps share: rows from top to bottom over a common time axis.

import { cssColor } from '../colors.js';
import { Plot, valueAxis } from '../plot.js';

/** Draw rows named `names`; `paint(u, rowBox)` draws, `tooltip(u, row, time)` tells of a place. */
export function drawRows(view, { names, times, paint, tooltip, label }) {
  const { board, state } = view;
  const longest = Math.min(Math.max(view.body.clientWidth * 0.24, 110), 240); // pixels of a name
  state.plot ||= new Plot(board);
  const count = Math.max(names.length, 1);
  const rowBox = (u, row) => {
    const height = u.bbox.height / count;
    return { top: u.bbox.top + row * height, height };
  };
  const axis = {
    ...valueAxis('y', 'none', { side: 3 }), grid: { show: false }, ticks: { show: false }, gap: 8,
    splits: (u) => visible(u, count), values: (u, splits) => splits.map((at) => clipped(u, names[Math.round(count - at - 0.5)] ?? '', longest)),
    size: (u, values) => {
      u.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
      const widest = Math.max(20, ...(values || []).map((one) => u.ctx.measureText(one).width / devicePixelRatio));
      return Math.min(Math.ceil(widest), longest) + 18;
    },
    stroke: cssColor('--text-soft'),
  };
  state.plot.draw({
    data: [times.length ? times : [board.shown.from], (times.length ? times : [0]).map(() => null)],
    series: [{ scale: 'y', stroke: 'transparent', points: { show: false } }],
    scales: { y: { range: () => [0, count] } }, axes: [axis], label,
    hooks: { draw: [(u) => clippedPaint(u, () => paint(u, rowBox))] },
    tooltip: (u) => {
      const row = Math.floor((u.cursor.top / u.over.clientHeight) * count);
      return row < 0 || row >= count ? null : tooltip(u, row, u.posToVal(u.cursor.left, 'x'));
    },
  });
  return state.plot;
}

function visible(u, count) {
  const step = Math.max(1, Math.ceil((count * 15 * devicePixelRatio) / Math.max(u.bbox.height, 1)));
  return Array.from({ length: Math.ceil(count / step) }, (_, at) => count - at * step - 0.5).reverse();
}

function clipped(u, text, longest) {
  u.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  const fits = (part) => u.ctx.measureText(part).width / devicePixelRatio <= longest;
  if (fits(text)) return text;
  let length = text.length;
  while (length > 1 && !fits(`${text.slice(0, length)}…`)) length--;
  return `${text.slice(0, length)}…`;
}

function clippedPaint(u, paint) {
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(left, top, width, height);
  u.ctx.clip();
  paint();
  u.ctx.restore();
}
