// Keys of the page, and the dialog that lists them.

import { closePopover, el } from './dom.js';
import { openDialog } from './query_dialog.js';
import { hideTooltip } from './tooltip.js';

const KEYS = [
  ['/', 'Filter the panels by title'], ['t', 'Choose the time range'], ['r', 'Refresh now'], ['z', 'Zoom out'],
  ['[', 'Earlier'], [']', 'Later'], ['d', 'Go to the list of dashboards'], ['?', 'Show these keys'],
  ['Escape', 'Close what is open; leave the whole screen'],
  ['Click in a legend', 'Show one series alone'], ['Ctrl + click in a legend', 'Show or hide one series'],
  ['Drag over a graph', 'Zoom into that time'],
];

/** Listen: `act` has a function for each of /, t, r, z, [, ], d and Escape. */
export function listenToKeys(act) {
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      if (document.querySelector('dialog[open]')) return;
      const closed = hideTooltip() | closePopover();
      if (!closed) act.Escape();
      return;
    }
    const typing = event.target.closest?.('input, select, textarea, [role=menu], dialog');
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '?') showKeys();
    else if (Object.hasOwn(act, event.key)) act[event.key]();
    else return;
    event.preventDefault();
  });
}

/** Open the list of keys. */
export function showKeys() {
  openDialog('Keyboard', el('table', { class: 'keys' }, el('tbody', {}, KEYS.map(([key, what]) => el('tr', {}, el('th', { scope: 'row' }, el('kbd', {}, key)), el('td', {}, what))))));
}
