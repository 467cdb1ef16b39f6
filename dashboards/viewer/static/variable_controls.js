// The controls of a dashboard's variables.

import { closePopover, el, icon, moveFocus, popover, popoverOf } from './dom.js';
import { ALL } from './variables.js';

const MOST = 500; // options in a list; the search finds the others

/** Controls of all variables that people may set. */
export function variableControls(board) {
  const { variables } = board;
  return variables.list.filter((one) => one.type !== 'datasource' && one.hide !== 2).map((one) => (one.type === 'textbox' ? textbox(board, one) : chooser(board, one)));
}

function textbox(board, one) {
  const { name } = one;
  const input = el('input', { class: 'field', type: 'text', value: board.variables.values[name], id: `var-${name}`, spellcheck: false, size: Math.min(Math.max(String(board.variables.values[name]).length, 12), 36) });
  const apply = () => input.value !== board.variables.values[name] && board.setVariable(name, input.value.trim());
  input.addEventListener('change', apply);
  input.addEventListener('keydown', (event) => event.key === 'Enter' && apply());
  return el('div', { class: 'variable', dataset: { variable: name } }, el('label', { for: `var-${name}`, class: 'variable-label' }, one.label || name), input);
}

function chooser(board, one) {
  const label = one.label || one.name;
  const text = board.variables.label(one.name) || 'none';
  const button = el(
    'button',
    { type: 'button', class: 'variable', dataset: { variable: one.name }, 'aria-haspopup': 'dialog', 'aria-expanded': 'false', 'aria-label': `${label}: ${text}`, onclick: () => (popoverOf(button) ? closePopover() : open(button, board, one)) },
    el('span', { class: 'variable-label' }, label), el('span', { class: 'variable-value' }, text), icon('chevron'),
  );
  return button;
}

function open(anchor, board, one) {
  const { variables } = board;
  const chosen = new Set([variables.values[one.name]].flat());
  const options = [...(one.includeAll ? [{ value: ALL, label: 'All' }] : []), ...(variables.options[one.name] || [])];
  const list = el('div', { class: 'choices', role: 'group' });
  let changed = false;
  const finish = () => changed && board.setVariable(one.name, one.multi ? [...chosen] : [...chosen][0]);
  const search = el('input', { type: 'search', class: 'field', placeholder: 'Search …', 'aria-label': `Search ${one.label || one.name}`, dataset: { autofocus: '' }, oninput: () => fill() });
  const pick = (value) => {
    changed = true;
    if (!one.multi) {
      chosen.clear();
      chosen.add(value);
      closePopover();
      return;
    }
    if (value === ALL) {
      chosen.clear();
      chosen.add(ALL);
    } else {
      chosen.delete(ALL);
      if (!chosen.delete(value)) chosen.add(value);
      if (!chosen.size) chosen.add(one.includeAll ? ALL : value);
    }
    fill();
  };
  const fill = () => {
    const wanted = search.value.trim().toLowerCase();
    const fitting = options.filter(({ label }) => label.toLowerCase().includes(wanted));
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.value : null;
    const free = wanted && one.allowCustomValue !== false && one.type === 'query' && !fitting.some(({ label }) => label === search.value.trim()) ? [{ value: search.value.trim(), label: `Use “${search.value.trim()}”` }] : [];
    list.replaceChildren(
      ...[...fitting.slice(0, MOST), ...free].map(({ value, label }) => {
        const on = chosen.has(value);
        return el('button', { type: 'button', class: `choice ${on ? 'on' : ''}`, 'aria-pressed': String(on), dataset: { value }, onclick: () => pick(value) }, el('span', { class: one.multi ? 'check' : 'dot', 'aria-hidden': 'true' }), el('span', {}, label || '(empty)'));
      }),
      fitting.length > MOST ? el('div', { class: 'hint' }, `and ${fitting.length - MOST} more: search`) : fitting.length || free.length ? '' : el('div', { class: 'hint' }, 'No values in this time range.'),
    );
    if (focused !== null) [...list.children].find((child) => child.dataset.value === focused)?.focus();
  };
  fill();
  const box = el('div', { class: 'choice-box' }, search, list, one.multi ? el('div', { class: 'hint' }, 'Choose several; close the list to apply.') : null);
  box.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && event.target === search) {
      event.preventDefault();
      const first = list.querySelector('.choice');
      if (first) pick(first.dataset.value);
    } else if (event.target !== search || event.key === 'ArrowDown') moveFocus(event, list, '.choice');
  });
  popover(anchor, box, { label: `Values of ${one.label || one.name}`, onclose: finish });
}
