// Legend of a graph, as a list or as a table of calculations. A click shows one series alone, Ctrl-click toggles it.

import { el } from './dom.js';
import { CALC_NAMES, display, reduce } from './fields.js';

/** `series`: {field, color, name}; `hidden`: names of series that are off; `onchange` is called after a change. */
export function legend(series, { displayMode, placement, calcs = [] }, hidden, onchange, onhover = () => {}) {
  const choose = (event, name) => {
    const names = series.map((one) => one.name);
    if (event.ctrlKey || event.metaKey || event.shiftKey) hidden.has(name) ? hidden.delete(name) : hidden.add(name);
    else {
      const alone = names.every((one) => one === name || hidden.has(one)) && !hidden.has(name);
      hidden.clear();
      if (!alone) for (const one of names) if (one !== name) hidden.add(one);
    }
    onchange();
  };
  const button = (one) =>
    el(
      'button',
      {
        type: 'button', class: 'legend-name', 'aria-pressed': String(!hidden.has(one.name)), title: one.name,
        onclick: (event) => choose(event, one.name),
        onpointerenter: () => onhover(one.name), onpointerleave: () => onhover(null),
      },
      el('span', { class: 'swatch', style: { background: one.color } }),
      el('span', { class: 'legend-text' }, one.name),
    );
  const place = placement === 'right' ? 'legend legend-right' : 'legend';
  if (displayMode !== 'table' || !calcs.length) {
    return el('div', { class: `${place} legend-list`, role: 'group', 'aria-label': 'Legend' }, series.map((one) => el('span', { class: hidden.has(one.name) ? 'off' : '' }, button(one))));
  }
  const head = el('tr', {}, el('th', { scope: 'col' }, 'Series'), calcs.map((calc) => el('th', { scope: 'col', class: 'number' }, CALC_NAMES[calc] || calc)));
  const rows = series.map((one) =>
    el(
      'tr',
      { class: hidden.has(one.name) ? 'off' : '' },
      el('td', {}, button(one)),
      calcs.map((calc) => {
        const value = reduce(one.field.values, calc);
        return el('td', { class: 'number' }, value === null ? '–' : display(one.field, value, 'palette-classic').text);
      }),
    ),
  );
  return el('div', { class: `${place} legend-table`, tabIndex: -1 }, el('table', {}, el('thead', {}, head), el('tbody', {}, rows)));
}
