// The time range: quick ranges, absolute times, earlier, later, zoom out; refresh and its interval.

import { closePopover, el, icon, iconButton, moveFocus, popover, popoverOf } from './dom.js';
import { QUICK, isRelative, resolve, resolveRange } from './timerange.js';
import { formatTime } from './units.js';

const INTERVALS = ['', '5s', '10s', '30s', '1m', '5m', '15m', '1h'];

/** How a range reads. */
export function describe(range) {
  const quick = range.to === 'now' && QUICK.find(([from]) => from === range.from);
  if (quick) return quick[1];
  const relative = range.to === 'now' && /^now-(\d+)([smhdwMy])$/.exec(range.from);
  if (relative) return `Last ${relative[1]} ${{ s: 'seconds', m: 'minutes', h: 'hours', d: 'days', w: 'weeks', M: 'months', y: 'years' }[relative[2]]}`;
  const text = (end) => (/^\d+$/.test(end) ? formatTime(Number(end)) : end);
  return `${text(range.from)} to ${text(range.to)}`;
}

/** The controls; `act` has setRange(range), refresh() and setRefresh(text). */
export function timeControls(range, refresh, act) {
  const picker = el('button', { type: 'button', class: 'button time-button', 'aria-haspopup': 'dialog', 'aria-expanded': 'false', 'aria-label': `Time range: ${describe(range)}`, title: 'Time range (t)', onclick: () => (popoverOf(picker) ? closePopover() : openPicker(picker, range, act)) }, icon('clock'), el('span', { class: 'time-text' }, describe(range)), icon('chevron'));
  const chosen = INTERVALS.includes(refresh || '') ? INTERVALS : [...INTERVALS, refresh];
  const interval = el('select', { class: 'refresh-interval', 'aria-label': 'Refresh every', title: 'Refresh every', onchange: () => act.setRefresh(interval.value) }, chosen.map((one) => el('option', { value: one, selected: one === (refresh || '') }, one || 'Off')));
  return el(
    'div',
    { class: 'time-controls', role: 'group', 'aria-label': 'Time range and refresh' },
    iconButton('left', 'Earlier', () => act.setRange(shifted(range, -1))), picker,
    iconButton('right', 'Later', () => act.setRange(shifted(range, 1))),
    iconButton('zoomout', 'Zoom out', () => act.setRange(zoomedOut(range))),
    el('span', { class: 'refresh-group' }, iconButton('refresh', 'Refresh (r)', () => act.refresh(), { class: 'icon-button refresh' }), interval),
  );
}

/** Half a range earlier or later. */
export function shifted(range, direction) {
  const { from, to } = resolveRange(range) || resolveRange({ from: 'now-6h', to: 'now' });
  const by = Math.round((to - from) / 2) * direction;
  return { from: String(from + by), to: String(to + by) };
}

/** Twice the range around its middle; the end never passes now. */
export function zoomedOut(range) {
  const { from, to } = resolveRange(range) || resolveRange({ from: 'now-6h', to: 'now' });
  const half = Math.max((to - from) / 2, 500);
  const end = Math.min(to + half, Math.max(Date.now(), to));
  return { from: String(Math.round(Math.max(end - 4 * half, 0))), to: String(Math.round(end)) };
}

function openPicker(anchor, range, act) {
  const now = resolveRange(range);
  const shown = (end, at) => (isRelative({ to: end }) || !at ? end : formatTime(at));
  const fields = ['from', 'to'].map((name) => el('input', { class: 'field', type: 'text', id: `time-${name}`, value: /^\d+$/.test(range[name]) ? formatTime(Number(range[name])) : shown(range[name], now?.[name]), spellcheck: false, autocomplete: 'off', dataset: name === 'from' ? { autofocus: '' } : undefined }));
  const problem = el('p', { class: 'says', role: 'alert', hidden: true });
  const apply = (event) => {
    event.preventDefault();
    const [from, to] = fields.map((field) => field.value.trim());
    const text = (end, isEnd) => (end.startsWith('now') ? end : String(resolve(end, isEnd) ?? ''));
    const chosen = { from: text(from, false), to: text(to, true) };
    const unread = ['from', 'to'].find((name, at) => resolve([from, to][at], name === 'to') === null);
    problem.textContent = unread ? `“${unread === 'from' ? from : to}” is no time. Examples: now-6h, now/d, 2026-03-01 12:00.` : 'The range ends before it starts.';
    problem.hidden = Boolean(!unread && resolveRange(chosen));
    if (!problem.hidden) return;
    closePopover();
    act.setRange(chosen);
  };
  const quick = el('div', { class: 'quick', role: 'group', 'aria-label': 'Quick ranges' }, QUICK.map(([from, text]) => el('button', { type: 'button', class: `choice ${range.to === 'now' && range.from === from ? 'on' : ''}`, onclick: () => {
    closePopover();
    act.setRange({ from, to: 'now' });
  } }, text)));
  quick.addEventListener('keydown', (event) => moveFocus(event, quick, '.choice'));
  const form = el('form', { class: 'absolute', onsubmit: apply },
    el('label', { for: 'time-from' }, 'From'), fields[0], el('label', { for: 'time-to' }, 'To'), fields[1], problem,
    el('button', { type: 'submit', class: 'button primary' }, 'Apply'),
    el('p', { class: 'hint' }, `Local time, ${Intl.DateTimeFormat().resolvedOptions().timeZone}. Drag over a graph to zoom in.`));
  popover(anchor, el('div', { class: 'time-box' }, form, quick), { label: 'Time range' });
}
