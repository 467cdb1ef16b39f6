// One graph of uPlot with what all graphs share: size, axes, crosshair, zoom by drag, annotations, tooltip.

import { cssColor, faded, markColor } from './colors.js';
import { el } from './dom.js';
import { formatTick, formatTime, tickTexts } from './units.js';
import { hideTooltip, showTooltip } from './tooltip.js';

const uPlot = window.uPlot;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const sync = uPlot.sync('board');

/** A graph in an element; `draw` may be called again with other data at any time. */
export class Plot {
  constructor(board) {
    this.board = board;
    this.root = el('div', { class: 'plot' });
    this.held = null;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.root);
  }

  /**
   * Draw. `spec`: {data, series, scales, axes, bands, hooks, tooltip(u, index, event), label, x: 'time' | 'number',
   * onclick(u, index, event)}.
   */
  draw(spec) {
    this.spec = spec;
    if (this.dragging) {
      this.pending = true; // it is drawn once the mouse button is up
      return;
    }
    this.pending = false;
    const { clientWidth: width, clientHeight: height } = this.root;
    if (width < 20 || height < 20) return; // the observer calls again
    const before = this.u && this.hovering ? { left: this.u.cursor.left, top: this.u.cursor.top } : null;
    this.u?.destroy();
    this.u = new uPlot(this.options(width, height), spec.data);
    this.root.replaceChildren(this.u.root);
    this.root.setAttribute('role', 'img');
    this.root.setAttribute('aria-label', spec.label || 'Graph');
    if (before) this.u.setCursor(before, false);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (!this.spec || width < 20 || height < 20) return;
    if (!this.u) this.draw(this.spec);
    else if (this.u.width !== width || this.u.height !== height) this.u.setSize({ width, height });
  }

  destroy() {
    this.observer.disconnect();
    hideTooltip(this);
    this.u?.destroy();
    this.u = null;
  }

  options(width, height) {
    const { spec } = this;
    const isTime = spec.x !== 'number';
    const given = spec.hooks || {};
    const hooks = {
      init: [(u) => this.listen(u)],
      setCursor: [(u) => this.point(u)],
      setSelect: [(u) => this.select(u, isTime)],
      drawClear: [...(isTime ? [(u) => this.regions(u)] : []), ...(given.drawClear || [])],
      draw: [...(given.draw || []), ...(isTime ? [(u) => this.markers(u)] : [])],
    };
    return {
      width, height, ms: 1, padding: [8, 24, 0, 0], hooks, legend: { show: false }, bands: spec.bands,
      scales: { x: isTime ? { time: true, range: () => [this.board.shown.from, this.board.shown.to] } : { time: false, range: spec.xRange }, ...spec.scales },
      series: [{}, ...spec.series],
      axes: [isTime ? timeAxis() : valueAxis('x', spec.xUnit, { side: 2, label: spec.xLabel, labelSize: 18, labelFont: FONT }), ...spec.axes],
      cursor: {
        drag: { x: isTime, y: false, setScale: false },
        points: { size: 7, width: 1.5 },
        focus: { prox: 40 },
        y: !isTime,
        ...(isTime ? { sync: { key: sync.key, setSeries: false, scales: ['x', null] } } : {}),
      },
      focus: { alpha: 1 },
    };
  }

  listen(u) {
    const { over } = u;
    over.addEventListener('pointerenter', () => (this.hovering = true));
    over.addEventListener('pointerleave', () => {
      this.hovering = false;
      hideTooltip(this);
    });
    over.addEventListener('pointermove', (event) => (this.at = event));
    over.addEventListener('mousedown', (event) => {
      this.dragging = true;
      this.downAt = event.clientX;
      window.addEventListener('mouseup', () => setTimeout(() => {
        this.dragging = false;
        if (this.pending) this.draw(this.spec);
      }), { once: true });
    });
    over.addEventListener('click', (event) => {
      if (Math.abs(event.clientX - (this.downAt ?? event.clientX)) < 4) this.spec.onclick?.(u, u.cursor.idx, event);
    });
  }

  point(u) {
    if (!this.hovering || !this.at) return;
    const { idx, left } = u.cursor;
    const content = left < 0 || idx === null || idx === undefined ? null : this.spec.tooltip?.(u, idx, this.at);
    if (content) showTooltip(this, content, this.at.clientX, this.at.clientY);
    else hideTooltip(this);
  }

  select(u, isTime) {
    const { left, width } = u.select;
    if (!isTime || width < 5 || !this.hovering) {
      if (width) u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      return;
    }
    const [from, to] = [left, left + width].map((at) => Math.round(u.posToVal(at, 'x')));
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.dragging = false;
    hideTooltip(this);
    this.board.setRange({ from: String(from), to: String(Math.max(to, from + 1000)) });
  }

  /** Shade the time of each annotation, below the series. */
  regions(u) {
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    for (const { from, to, color } of united(this.board.annotations)) {
      const [a, b] = [from, to].map((at) => u.valToPos(at, 'x', true));
      ctx.fillStyle = faded(markColor(color), 0.08);
      ctx.fillRect(a, top, Math.max(b - a, 1), height);
    }
    for (const { from, color } of this.board.annotations) {
      const a = u.valToPos(from, 'x', true);
      if (a < left || a > left + width) continue;
      ctx.strokeStyle = faded(markColor(color), 0.75);
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(a, top);
      ctx.lineTo(a, top + height);
      ctx.stroke();
    }
    ctx.restore();
  }

  /** A bar at the foot of the graph for each annotation, which tells its text. */
  markers(u) {
    const { from: first, to: last } = this.board.shown;
    const place = (at) => u.valToPos(Math.min(Math.max(at, first), last), 'x');
    const made = this.board.annotations.filter(({ from, to }) => to >= first && from <= last).slice(0, 200).map((one) => {
      const left = place(one.from);
      const marker = el('div', { class: 'annotation', style: { left: `${left}px`, width: `${Math.max(place(one.to) - left, 5)}px`, background: markColor(one.color) } });
      marker.addEventListener('pointerenter', (event) => showTooltip(marker, annotationText(one), event.clientX, event.clientY));
      marker.addEventListener('pointerleave', () => hideTooltip(marker));
      return marker;
    });
    this.foot?.remove();
    this.foot = el('div', { class: 'annotations' }, made);
    u.over.append(this.foot);
  }
}

/** Regions of one colour that overlap as one: shades must not add up. */
function united(annotations) {
  const found = [];
  for (const { from, to, color } of annotations.filter((one) => one.to > one.from).sort((a, b) => a.from - b.from)) {
    const last = found.findLast((one) => one.color === color);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else found.push({ from, to, color });
  }
  return found;
}

function annotationText({ name, from, to, isOpen, title, text, tags }) {
  const end = to > from ? (isOpen ? ' until now' : ` to ${formatTime(to)}`) : '';
  return el(
    'div',
    { class: 'tooltip-text' },
    el('div', { class: 'tooltip-title' }, title || name),
    el('div', {}, text),
    el('div', { class: 'tooltip-note' }, `${formatTime(from)}${end}`),
    tags.length ? el('div', { class: 'tags' }, tags.map((tag) => el('span', { class: 'tag' }, tag))) : null,
  );
}

function axisStyle() {
  return {
    font: FONT, stroke: cssColor('--text-soft'),
    grid: { stroke: cssColor('--grid'), width: 1 }, ticks: { stroke: cssColor('--grid'), width: 1, size: 4 }, border: { show: false },
  };
}

// Steps between ticks of time, in milliseconds. uPlot's own go from one minute to five at once, which leaves one tick.
const TIMES = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500], ...[1, 2, 5, 10, 15, 30].map((count) => count * 1000), ...[1, 2, 5, 10, 15, 30].map((count) => count * 60000),
  ...[1, 2, 3, 6, 12].map((count) => count * 3600000), ...[1, 2, 3, 5, 7, 10, 15, 30, 60, 90, 180, 365, 730, 1825].map((days) => days * 86400000),
];

function timeAxis() {
  return { ...axisStyle(), scale: 'x', size: 30, space: 70, gap: 6, incrs: TIMES, values: (_u, splits, _axis, _space, step) => splits.map((at) => formatTick(at, step)) };
}

// Steps between ticks: three digits tell them apart. Durations in seconds: those of a clock and of a calendar.
const DECIMAL = Array.from({ length: 31 }, (_, power) => [1, 2, 5].map((digit) => Number(`${digit}e${power - 15}`))).flat();
const DURATIONS = [
  ...DECIMAL.filter((step) => step < 15), 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
  ...[2, 5, 10, 20, 50, 100, 200, 365, 730, 1825, 3650].map((days) => days * 86400),
];
const BINARY = Array.from({ length: 61 }, (_, power) => 2 ** power);
const STEPS = { s: DURATIONS, ms: DURATIONS.map((step) => step * 1000), bytes: BINARY };

/** An axis of numbers in a unit. */
export function valueAxis(scale, unit, extra = {}) {
  return {
    ...axisStyle(), scale, gap: 6, space: extra.side === 2 ? 60 : 28,
    incrs: STEPS[unit] || DECIMAL,
    values: (_u, splits) => tickTexts(splits, unit),
    size: (u, values, axis, cycle) => {
      if (extra.side === 2) return 30;
      if (cycle > 1) return u.axes[axis]._size;
      const longest = (values || []).reduce((a, b) => (b.length > a.length ? b : a), '');
      u.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
      return Math.ceil(u.ctx.measureText(longest).width / devicePixelRatio) + 18;
    },
    ...extra,
  };
}

/** A range of numbers with room above and below; `least` and `most` where the panel sets them. */
export function valueRange(least, most, { others = [], fromZero = false, unit = '' } = {}) {
  return (_u, min, max) => {
    const all = [min, max, ...others].filter((one) => one !== null && one !== undefined && Number.isFinite(one));
    if (!all.length) return [least ?? 0, most ?? 1];
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const found = uPlot.rangeNum(low, high, { min: { pad: 0.1, soft: 0, mode: fromZero ? 1 : 3 }, max: { pad: 0.1, soft: 0, mode: 3 } });
    const whole = { percentunit: 1, percent: 100 }[unit]; // a share has no room above all
    const range = [least ?? found[0], most ?? (high <= whole ? Math.min(found[1], whole) : found[1])];
    return range[0] < range[1] ? range : [range[0], range[0] + 1];
  };
}
