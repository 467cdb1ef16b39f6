// The one tooltip of the page, beside the pointer or below what has the focus.

import { el } from './dom.js';

let box = null;
let owner = null;

/** Show `content` near a point of the window. */
export function showTooltip(by, content, x, y) {
  if (!box) {
    box = el('div', { class: 'tooltip', role: 'tooltip', id: 'tooltip' });
    document.body.append(box);
  }
  owner = by;
  box.replaceChildren(content);
  box.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = box;
  const right = x + 16 + width > window.innerWidth - 8;
  box.style.left = `${Math.max(8, right ? x - width - 16 : x + 16)}px`;
  box.style.top = `${Math.max(8, Math.min(y + 14, window.innerHeight - height - 8))}px`;
}

/** Hide it if `by` shows it. */
export function hideTooltip(by) {
  if (!box || (by && owner !== by)) return false;
  const shown = !box.hidden;
  box.hidden = true;
  owner = null;
  return shown;
}

/** Explain an element by text, on hover and on focus. */
export function explain(node, text) {
  const show = () => {
    const { left, bottom } = node.getBoundingClientRect();
    showTooltip(node, el('div', { class: 'tooltip-text' }, text), left - 12, bottom - 6);
  };
  node.addEventListener('pointerenter', show);
  node.addEventListener('focus', show);
  node.addEventListener('pointerleave', () => hideTooltip(node));
  node.addEventListener('blur', () => hideTooltip(node));
}

/** Rows of a tooltip: a colour, a name and a value each. */
export function tooltipRows(title, rows, note) {
  return el(
    'div',
    {},
    title && el('div', { class: 'tooltip-title' }, title),
    el(
      'table',
      { class: 'tooltip-rows' },
      el('tbody', {}, rows.map(({ color, name, text, strong }) =>
        el('tr', { class: strong ? 'strong' : '' }, el('td', {}, color && el('span', { class: 'swatch', style: { background: color } }), name), el('td', { class: 'number' }, text)),
      )),
    ),
    note && el('div', { class: 'tooltip-note' }, note),
  );
}
