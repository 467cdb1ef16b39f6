// A text in Markdown, made of elements: HTML in it is shown as it stands.

import { el, safeHref } from '../dom.js';

/** Draw the panel; the parser is loaded with the first text. */
export async function draw(view) {
  const { lexer } = await import('../vendor/marked/marked.esm.js');
  view.place([el('div', { class: 'markdown', tabIndex: 0, role: 'region', 'aria-label': view.panel.title }, blocks(lexer(view.panel.options.content)))]);
}

const blocks = (tokens) => tokens.map((token) => (BLOCKS[token.type] || inline)(token));
const parts = (tokens) => (tokens || []).map(inline);
const cells = (tag) => (cell) => el(tag, {}, parts(cell.tokens));

const BLOCKS = {
  space: () => null,
  hr: () => el('hr'),
  heading: ({ depth, tokens }) => el(`h${Math.min(depth + 3, 6)}`, { class: `level-${depth}` }, parts(tokens)), // below the panel's h3
  paragraph: ({ tokens }) => el('p', {}, parts(tokens)),
  blockquote: ({ tokens }) => el('blockquote', {}, blocks(tokens)),
  code: ({ text }) => el('pre', { tabIndex: 0 }, el('code', {}, text)),
  list: ({ ordered, start, items }) => el(ordered ? 'ol' : 'ul', ordered && start !== 1 ? { start } : {}, items.map((item) => el('li', {}, blocks(item.tokens)))),
  table: ({ header, rows }) => el('table', {}, el('thead', {}, el('tr', {}, header.map(cells('th')))), el('tbody', {}, rows.map((row) => el('tr', {}, row.map(cells('td')))))),
};

const WRAPPED = { strong: 'strong', em: 'em', del: 'del' };

function inline(token) {
  if (token.type in WRAPPED) return el(WRAPPED[token.type], {}, parts(token.tokens));
  if (token.type === 'codespan') return el('code', {}, token.text);
  if (token.type === 'br') return el('br');
  const href = token.type === 'link' ? safeHref(token.href) : '';
  if (href) return el('a', { href }, parts(token.tokens));
  return token.tokens ? el('span', {}, parts(token.tokens)) : token.text;
}
