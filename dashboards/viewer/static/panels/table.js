// A table: sorted by its heads, filtered per column, with coloured cells, gauges and links.

import { faded, markColor, readableOn, textColor } from '../colors.js';
import { el, icon, openMenu } from '../dom.js';
import { display } from '../fields.js';
import { filterButton, passes } from './table_filter.js';

const AT_ONCE = 100; // rows; more are added while one scrolls

export function draw(view, frames) {
  const { state, panel } = view;
  state.filters ||= new Map();
  const frame = frames[panel.options?.frameIndex || 0] || { fields: [], length: 0 };
  const fields = frame.fields.filter((field) => !field.config.custom.hidden);
  state.sort ??= startSort(panel, fields);
  state.again = () => draw(view, frames);
  const rows = orderedRows(frame, fields, state);
  const scroll = state.scroller ? { top: state.scroller.scrollTop, left: state.scroller.scrollLeft } : { top: 0, left: 0 };
  const body = el('tbody');
  const table = el('table', { class: `data ${fields.some(wraps) ? 'wraps' : ''}` }, el('colgroup', {}, fields.map(column)), el('thead', {}, head(view, frame, fields)), body);
  const scroller = el('div', { class: 'table-scroll', tabIndex: 0, role: 'region', 'aria-label': `${panel.title}, table` }, table);
  let shown = 0;
  const more = () => {
    const next = rows.slice(shown, shown + AT_ONCE);
    body.append(...next.map((row) => el('tr', {}, fields.map((field) => cell(view, frame, field, row)))));
    shown += next.length;
  };
  const target = Math.max(AT_ONCE, Math.ceil((scroll.top + 800) / 28));
  while (shown < Math.min(rows.length, target)) more();
  scroller.addEventListener('scroll', () => {
    while (shown < rows.length && scroller.scrollTop + scroller.clientHeight > scroller.scrollHeight - 400) more();
  }, { passive: true });
  const parts = [scroller];
  if (state.filters.size) parts.push(filterNote(view, rows.length, frame.length));
  state.scroller = scroller;
  view.place(parts);
  scroller.scrollTop = scroll.top;
  scroller.scrollLeft = scroll.left;
}

function startSort(panel, fields) {
  const given = panel.options?.sortBy?.[0];
  const field = given && fields.find((one) => one.displayName === given.displayName);
  return field ? { name: field.name, down: Boolean(given.desc) } : null;
}

function orderedRows(frame, fields, { filters, sort }) {
  const checks = fields.filter((field) => filters.has(field.name)).map((field) => [field, filters.get(field.name)]);
  const rows = [];
  for (let row = 0; row < frame.length; row++) {
    if (checks.every(([field, filter]) => passes(filter, display(field, field.values[row]).text))) rows.push(row);
  }
  const by = sort && fields.find((field) => field.name === sort.name);
  if (!by) return rows;
  const sign = sort.down ? -1 : 1;
  const none = (value) => value === null || value === undefined || value === '';
  return rows.sort((a, b) => {
    const [x, y] = [by.values[a], by.values[b]];
    if (none(x) || none(y)) return none(x) - none(y); // last, whatever the direction
    return sign * (typeof x === 'string' ? x.localeCompare(y, undefined, { numeric: true }) : x - y);
  });
}

function column(field) {
  const { width, minWidth } = field.config.custom;
  return el('col', { style: width ? { width: `${width}px` } : minWidth ? { minWidth: `${minWidth}px` } : {} });
}

function head(view, frame, fields) {
  const { state } = view;
  return el('tr', {}, fields.map((field) => {
    const sorted = state.sort?.name === field.name ? state.sort : null;
    const next = () => {
      state.sort = !sorted ? { name: field.name, down: field.type === 'number' } : sorted.down === (field.type === 'number') ? { ...sorted, down: !sorted.down } : null;
      state.again();
      view.body.querySelector(`th[data-name="${CSS.escape(field.name)}"] button`)?.focus();
    };
    const name = el('button', { type: 'button', class: 'sort', onclick: next }, el('span', {}, field.displayName), sorted && icon(sorted.down ? 'down' : 'up'));
    const filter = field.config.custom.filterable ? filterButton(view, frame, field) : null;
    return el('th', { scope: 'col', class: align(field), dataset: { name: field.name }, 'aria-sort': sorted ? (sorted.down ? 'descending' : 'ascending') : 'none', style: widthOf(field) }, el('span', { class: 'th' }, name, filter));
  }));
}

function widthOf(field) {
  const { width } = field.config.custom;
  return width ? { minWidth: `${Math.min(width, 520)}px`, width: `${width}px` } : {};
}

const align = (field) => {
  const chosen = field.config.custom.align;
  return chosen && chosen !== 'auto' ? `align-${chosen}` : field.type === 'number' ? 'align-right' : 'align-left';
};

const wraps = (field) => Boolean(field.config.custom.cellOptions?.wrapText || field.config.custom.wrapText);

function cell(view, frame, field, row) {
  const value = field.values[row];
  const options = field.config.custom.cellOptions || {};
  const { text, color, none, mapped } = display(field, value);
  const links = none && text === '' ? [] : view.links(field, { frame, row, value, text });
  const words = text === '' ? '' : text;
  let inner = words;
  if (links.length === 1) inner = el('a', { href: links[0].href, title: links[0].title, target: links[0].blank ? '_blank' : undefined, rel: 'noopener noreferrer' }, words || links[0].title);
  else if (links.length > 1) inner = el('button', { type: 'button', class: 'cell-links', onclick: (event) => openMenu(event.currentTarget, links.map(({ title, href }) => ({ text: title, href })), 'Links') }, words, icon('chevron'));
  const td = el('td', { class: `${align(field)} ${wraps(field) ? 'wrap' : ''}` });
  if (options.type === 'gauge' && typeof value === 'number') td.append(gauge(field, value, color, inner));
  else if (options.type === 'color-background' && color && color !== 'transparent' && (mapped || color !== 'text')) {
    Object.assign(td.style, fill(color));
    td.classList.add('filled');
    td.append(inner);
  } else if (options.type === 'color-text' && color && color !== 'text' && color !== 'transparent') {
    td.append(el('span', { class: 'colored', style: { color: textColor(color) } }, inner));
  } else td.append(inner);
  if (!wraps(field) && words.length > 24) {
    td.title = words;
    td.classList.add('long');
  }
  return td;
}

/** A tint with text of the colour where the theme has one for it, else the colour itself. */
function fill(color) {
  const solid = markColor(color);
  return color.startsWith('#') || color.startsWith('palette-') ? { background: solid, color: readableOn(solid) } : { background: faded(solid, 0.17), color: textColor(color) };
}

function gauge(field, value, color, inner) {
  const known = field.values.filter((one) => typeof one === 'number');
  const low = field.config.min ?? Math.min(0, ...known);
  const high = field.config.max ?? Math.max(...known);
  const share = high > low ? Math.min(Math.max((value - low) / (high - low), 0), 1) : 0;
  return el('span', { class: 'gauge' }, el('span', { class: 'gauge-track' }, el('span', { class: 'gauge-bar', style: { width: `${100 * share}%`, background: markColor(color || 'blue') } })), el('span', { class: 'gauge-text' }, inner));
}

function filterNote(view, shown, all) {
  const clear = () => {
    view.state.filters.clear();
    view.state.again();
  };
  return el('div', { class: 'panel-note' }, `${shown.toLocaleString('en')} of ${all.toLocaleString('en')} rows match the filters. `, el('button', { type: 'button', class: 'text-button', onclick: clear }, 'Clear filters'));
}
