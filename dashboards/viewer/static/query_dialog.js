// The statements of a panel as the server runs them, to read and to copy.

import { el } from './dom.js';
import { statements } from './api.js';
import { intervalOf } from './timerange.js';

/** Open the dialog. */
export async function showQueries(board, { panel, element, answers }) {
  const list = el('div', { class: 'queries' }, el('p', {}, 'Loading …'));
  const dialog = openDialog(`Query of ${panel.title}`, list);
  const targets = panel.targets || [];
  const interval = intervalOf(board.shown, Math.max(element.clientWidth, 100));
  try {
    const found = await statements(board.body(targets.map((target) => ({ key: target.refId, kind: 'panel', name: String(panel.id), ref: target.refId, interval_s: interval }))));
    list.replaceChildren(...targets.flatMap(({ refId }) => {
      const sql = found[refId];
      const rows = answers.get(refId)?.rows;
      const copy = el('button', { type: 'button', class: 'button', onclick: async () => {
        await navigator.clipboard.writeText(sql).catch(() => {});
        copy.textContent = 'Copied';
      } }, 'Copy');
      return [el('div', { class: 'query-head' }, el('strong', {}, `Query ${refId}`), el('span', { class: 'hint' }, rows === undefined ? '' : `${rows.toLocaleString('en')} rows`), el('span', { class: 'spacer' }), copy), el('pre', { tabIndex: 0 }, el('code', {}, layout(sql)))];
    }));
  } catch (error) {
    list.replaceChildren(el('p', { class: 'says' }, error.message));
  }
  return dialog;
}

/** Break a statement before its main clauses, so that it can be read. */
const layout = (sql) => sql.replace(/ (FROM|WHERE|GROUP BY|ORDER BY|LIMIT|UNION ALL|ARRAY JOIN|LEFT JOIN|HAVING) /g, '\n$1 ').replace(/ AND /g, '\n  AND ');

/** A dialog over the page; Escape closes it. */
export function openDialog(title, ...content) {
  const dialog = el('dialog', { class: 'dialog', 'aria-label': title }, el('div', { class: 'dialog-head' }, el('h2', {}, title), el('button', { type: 'button', class: 'button', onclick: () => dialog.close() }, 'Close')), content);
  dialog.addEventListener('close', () => dialog.remove());
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
