// Filter of one column of a table: a text that must be in it, or values that are chosen.

import { el, iconButton, popover, popoverOf, closePopover } from '../dom.js';
import { display } from '../fields.js';

const MOST = 200;

/** Whether a cell's text passes. */
export const passes = ({ contains, values }, text) =>
  (!contains || text.toLowerCase().includes(contains.toLowerCase())) && (!values.size || values.has(text));

/** The button in a column's head that opens its filter. */
export function filterButton(view, frame, field) {
  const active = view.state.filters.has(field.name);
  return iconButton('filter', `Filter ${field.displayName}${active ? ' (active)' : ''}`, (event) => {
    if (popoverOf(event.currentTarget)) closePopover();
    else openFilter(event.currentTarget, view, frame, field);
  }, { class: `icon-button filter ${active ? 'active' : ''}`, 'aria-expanded': 'false', 'aria-haspopup': 'dialog' });
}

function openFilter(anchor, view, frame, field) {
  const { filters } = view.state;
  const filter = filters.get(field.name) || { contains: '', values: new Set() };
  const apply = () => {
    if (filter.contains || filter.values.size) filters.set(field.name, filter);
    else filters.delete(field.name);
    view.state.again();
  };
  const texts = [...new Set(field.values.map((value) => display(field, value).text))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  const list = el('div', { class: 'choices' });
  const fill = () => {
    const fitting = texts.filter((text) => text.toLowerCase().includes(filter.contains.toLowerCase()));
    list.replaceChildren(
      ...fitting.slice(0, MOST).map((text) =>
        el('label', { class: 'choice' }, el('input', { type: 'checkbox', checked: filter.values.has(text), onchange: (event) => {
          if (event.target.checked) filter.values.add(text);
          else filter.values.delete(text);
          apply();
        } }), el('span', {}, text || '(empty)')),
      ),
      fitting.length > MOST ? el('div', { class: 'hint' }, `and ${fitting.length - MOST} more`) : '',
    );
  };
  const input = el('input', { type: 'search', class: 'field', placeholder: 'Contains …', value: filter.contains, 'aria-label': `${field.displayName} contains`, dataset: { autofocus: '' }, oninput: () => {
    filter.contains = input.value;
    fill();
    apply();
  } });
  fill();
  const clear = () => {
    filters.delete(field.name);
    closePopover();
    view.state.again();
  };
  popover(anchor, el('div', { class: 'filter-box' }, input, list, el('button', { type: 'button', class: 'text-button', onclick: clear }, 'Clear')), { label: `Filter ${field.displayName}` });
}
