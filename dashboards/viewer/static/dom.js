// Elements of the page. Data reaches the page through textContent alone, never as markup.

/** Make an element: `props` are properties, `on…` listeners, `class`, `dataset`, and attributes with a dash. */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

const SVG = 'http://www.w3.org/2000/svg';

/** Make an element of SVG; all `props` are attributes. */
export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'class') node.className = value;
    else if (name === 'dataset') Object.assign(node.dataset, value);
    else if (name === 'style') Object.assign(node.style, value);
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name.includes('-') || name === 'role' || name === 'for') node.setAttribute(name, value === true ? '' : value);
    else node[name] = value;
  }
  node.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

/** The href if it is safe to follow: http, https or a path of this server; else an empty text. */
export function safeHref(url) {
  const text = String(url).trim();
  if (/^\/(?![/\\])/.test(text)) return text;
  return /^https?:\/\/[^\s]+$/i.test(text) ? text : '';
}

/** Icons, drawn in a box of 16. */
const ICONS = {
  menu: 'M3 4.5h10M3 8h10M3 11.5h10',
  more: 'M8 3.5v.01M8 8v.01M8 12.5v.01',
  info: 'M8 7.2v4M8 4.8v.01M14.2 8A6.2 6.2 0 1 1 1.8 8a6.2 6.2 0 0 1 12.4 0Z',
  clock: 'M8 4.5V8l2.3 1.5M14.2 8A6.2 6.2 0 1 1 1.8 8a6.2 6.2 0 0 1 12.4 0Z',
  refresh: 'M13 3v3.2H9.8M13 6.2A5.4 5.4 0 1 0 13.4 9',
  chevron: 'm4.5 6.5 3.5 3.5 3.5-3.5',
  left: 'M9.8 4 6 8l3.8 4',
  right: 'M6.2 4 10 8l-3.8 4',
  zoomout: 'M11 11l3 3M4.8 7h4.4M12 7A5 5 0 1 1 2 7a5 5 0 0 1 10 0Z',
  sun: 'M8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1M10.8 8a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0Z',
  moon: 'M13.2 9.6A5.7 5.7 0 0 1 6.4 2.8a5.7 5.7 0 1 0 6.8 6.8Z',
  filter: 'M2.5 3.5h11L9.4 8.4v4.1l-2.8-1.4V8.4L2.5 3.5Z',
  close: 'm4 4 8 8M12 4l-8 8',
  expand: 'M9.5 2.5h4v4M6.5 13.5h-4v-4M13.2 2.8 9.5 6.5M2.8 13.2l3.7-3.7',
  up: 'M8 12.5v-9M4.5 7 8 3.5 11.5 7',
  down: 'M8 3.5v9M4.5 9 8 12.5 11.5 9',
  help: 'M6.2 6.2a1.9 1.9 0 1 1 2.7 1.7c-.6.3-.9.7-.9 1.4M8 11.3v.01M14.2 8A6.2 6.2 0 1 1 1.8 8a6.2 6.2 0 0 1 12.4 0Z',
  link: 'M6.5 3.5h-3v9h9v-3M9 3h4v4M12.8 3.2 7.5 8.5',
};

/** An icon beside text or in a button with a label of its own; readers of the screen pass over it. */
export function icon(name) {
  const shape = svg('path', { d: ICONS[name] });
  return svg('svg', { viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': 'true', focusable: 'false' }, shape);
}

/** A button that shows an icon; `label` says what it does. */
export function iconButton(name, label, onclick, extra = {}) {
  return el('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick, ...extra }, icon(name));
}

/** Open `panel` below `anchor` until a click elsewhere or Escape; returns a function that closes it. */
export function popover(anchor, panel, { label, onclose } = {}) {
  closePopover();
  panel.classList.add('popover');
  panel.setAttribute('role', panel.getAttribute('role') || 'dialog');
  if (label) panel.setAttribute('aria-label', label);
  document.body.append(panel);
  anchor.setAttribute?.('aria-expanded', 'true');
  const place = () => {
    const box = anchor.getBoundingClientRect();
    const { innerWidth, innerHeight } = window;
    const left = Math.max(8, Math.min(box.left, innerWidth - panel.offsetWidth - 8));
    const below = box.bottom + 4;
    const top = below + panel.offsetHeight > innerHeight - 8 ? Math.max(8, Math.min(below, innerHeight - panel.offsetHeight - 8)) : below;
    panel.style.left = `${left}px`;
    panel.style.top = `${top}px`;
  };
  place();
  const outside = (event) => {
    if (!panel.contains(event.target) && !anchor.contains?.(event.target)) close(false);
  };
  const close = (focus = true) => {
    if (open?.close !== close) return;
    open = null;
    panel.remove();
    anchor.setAttribute?.('aria-expanded', 'false');
    document.removeEventListener('pointerdown', outside, true);
    window.removeEventListener('resize', place);
    if (focus) anchor.focus?.();
    onclose?.();
  };
  document.addEventListener('pointerdown', outside, true);
  window.addEventListener('resize', place);
  open = { close, anchor };
  (panel.querySelector('[data-autofocus]') || panel.querySelector('input,button,a,[tabindex]'))?.focus();
  return close;
}

let open = null;

/** Close the open popover; true if there was one. */
export function closePopover() {
  if (!open) return false;
  open.close();
  return true;
}

/** Whether the open popover belongs to this element. */
export function popoverOf(anchor) {
  return open?.anchor === anchor;
}

/** A menu of actions: arrow keys move, Enter runs. */
export function openMenu(anchor, items, label) {
  const menu = el('div', { role: 'menu', class: 'menu' });
  let close = () => {};
  for (const item of items) {
    const made = item.href
      ? el('a', { role: 'menuitem', href: item.href, tabIndex: 0, onclick: () => close(false) }, item.text)
      : el('button', { role: 'menuitem', type: 'button', onclick: () => { close(); item.run(); } }, item.text);
    menu.append(made);
  }
  menu.addEventListener('keydown', (event) => moveFocus(event, menu, '[role=menuitem]'));
  close = popover(anchor, menu, { label });
  return close;
}

/** Move the focus among the elements that match, with the arrow keys, Home and End. */
export function moveFocus(event, root, selector) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const all = [...root.querySelectorAll(selector)].filter((one) => !one.hidden);
  if (!all.length) return;
  const at = all.indexOf(document.activeElement);
  let next = null;
  if (step) next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : (at + step + all.length) % all.length];
  else if (event.key === 'Home') next = all[0];
  else if (event.key === 'End') next = all[all.length - 1];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
