// The page: which dashboard the address names, its controls, and what happens by key, by clock and by link.

import { getJson } from './api.js';
import { Activity } from './activity.js';
import { Board } from './board.js';
import { el, icon, iconButton } from './dom.js';
import { listenToKeys, showKeys } from './keyboard.js';
import { variableParameters } from './links.js';
import { address, readAddress, refreshMs, remember, remembered } from './state.js';
import { shifted, timeControls, zoomedOut } from './time_controls.js';
import { resolveRange } from './timerange.js';
import { variableControls } from './variable_controls.js';

const $ = (id) => document.getElementById(id);
const documents = new Map();
const app = { listing: [], board: null, refresh: '', due: 0 };

const readDocument = (uid) => {
  if (!documents.has(uid)) {
    const loading = getJson(`/api/dashboards/${encodeURIComponent(uid)}`);
    documents.set(uid, loading);
    loading.catch(() => documents.delete(uid));
  }
  return documents.get(uid);
};

async function route() {
  const asked = readAddress();
  const current = app.board;
  if (current && current.uid === asked.uid) {
    // Back and forward within a dashboard.
    const next = new URLSearchParams(location.search);
    if (`?${next}` === new URL(addressOf(current), location.origin).search) return;
  }
  let document_;
  try {
    document_ = await readDocument(asked.uid);
  } catch (error) {
    fail(error);
    return;
  }
  const range = { from: asked.from ?? document_.time.from, to: asked.to ?? document_.time.to };
  app.refresh = asked.refresh ?? document_.refresh ?? '';
  current?.destroy();
  const board = new Board(document_, asked.variables, resolveRange(range) ? range : { ...document_.time }, {
    onchange: () => {
      history.pushState(null, '', addressOf(app.board));
      drawControls();
    },
    onvariables: () => board === app.board && variablesChanged(),
    announce,
  });
  app.board = board;
  document.title = `${document_.title} · ragtide`;
  $('title').textContent = document_.title;
  $('about').textContent = document_.description || '';
  $('filter').value = '';
  $('board').replaceChildren(board.element);
  $('board').setAttribute('aria-busy', 'false');
  drawControls();
  drawNavigation();
  if (asked.panel) board.view(board.panelById(asked.panel), false);
  if (!current || current.uid !== board.uid) window.scrollTo(0, 0);
  schedule();
  await board.load();
}

function fail(error) {
  app.board?.destroy();
  app.board = null;
  $('title').textContent = 'Dashboard not found';
  $('board').replaceChildren(el('div', { class: 'page-error', role: 'alert' }, el('p', { class: 'says' }, error.message), el('p', {}, error.todo === 'Reload the page.' ? 'Choose a dashboard from the list.' : error.todo)));
  drawNavigation();
}

const addressOf = (board) => address({ uid: board.uid, range: board.range, refresh: app.refresh, panel: board.solo?.panel.id, variables: board.variables.values });

function variablesChanged() {
  // Values that a query chose belong into the address, so that it can be shared; they are no step back.
  history.replaceState(null, '', addressOf(app.board));
  drawControls();
  drawNavigation();
}

function drawControls() {
  const { board } = app;
  if (!board) return;
  const focused = document.activeElement?.closest?.('[data-variable]')?.dataset.variable;
  const inField = document.activeElement?.matches?.('#variables input');
  if (!inField) $('variables').replaceChildren(...variableControls(board));
  if (focused && !inField) $('variables').querySelector(`[data-variable="${CSS.escape(focused)}"]`)?.focus();
  const act = {
    setRange: (range) => board.setRange(range),
    refresh: () => refreshNow(),
    setRefresh: (text) => {
      app.refresh = text;
      history.replaceState(null, '', addressOf(board));
      schedule();
    },
  };
  $('time').replaceChildren(timeControls(board.range, app.refresh, act));
  $('solo').hidden = !board.solo;
  drawNavigation();
}

/** The list of dashboards, each with the time and those variables that it has too. */
function drawNavigation() {
  const { board } = app;
  const links = app.listing.map(({ uid, title, description, variables }) => {
    const current = uid === (board?.uid ?? readAddress().uid);
    return el('a', { href: linkTo(uid, variables), title: description, 'aria-current': current ? 'page' : undefined }, title.replace(/^RAG (\w)/, (_, first) => first.toUpperCase()));
  });
  const others = (board?.document.links || []).filter((one) => one.type === 'link' && /^https?:\/\//.test(one.url)).map(({ title, url }) => el('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, title, icon('link')));
  $('dashboards').replaceChildren(...links, ...others);
}

function linkTo(uid, variables) {
  const { board } = app;
  if (!board) return `/d/${encodeURIComponent(uid)}`;
  const kept = Object.fromEntries(Object.entries(board.variables.values).filter(([name, value]) => variables.includes(name) && String(value) !== ''));
  const parameters = [variableParameters(kept), new URLSearchParams(board.range).toString()].filter(Boolean).join('&');
  return `/d/${encodeURIComponent(uid)}?${parameters}`;
}

function announce(text) {
  $('status').textContent = text;
  $('toast').textContent = text;
  $('toast').hidden = false;
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => ($('toast').hidden = true), 3000);
}

function schedule() {
  const every = refreshMs(app.refresh);
  app.due = every ? Date.now() + every : 0;
}

async function refreshNow() {
  schedule();
  const button = document.querySelector('.refresh');
  button?.classList.add('spinning');
  setTimeout(() => document.querySelector('.refresh')?.classList.remove('spinning'), 600);
  await app.board?.load();
}

setInterval(() => {
  const { board, due } = app;
  if (!board || !due || document.hidden || Date.now() < due) return;
  if (board.busy || document.querySelector('.u-over:active')) return; // after the answers that are still to come
  schedule();
  if (board.moves) board.refresh();
}, 250);

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  remember('theme', theme);
  drawTheme();
  app.board?.redraw();
}

function drawTheme() {
  const dark = document.documentElement.dataset.theme === 'dark';
  const label = dark ? 'Light theme' : 'Dark theme';
  $('theme').replaceChildren(iconButton(dark ? 'sun' : 'moon', label, () => setTheme(dark ? 'light' : 'dark')));
}

/** Links to dashboards change the page without loading it anew. */
document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href]');
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (link.target === '_blank' || link.origin !== location.origin || !link.pathname.startsWith('/d/')) return;
  event.preventDefault();
  closeDrawer();
  history.pushState(null, '', link.href);
  route();
});
window.addEventListener('popstate', route);
document.addEventListener('visibilitychange', () => !document.hidden && app.due && app.due < Date.now() && refreshNow());
window.matchMedia('(prefers-color-scheme: light)').addEventListener('change', (event) => {
  if (remembered('theme', '')) return;
  document.documentElement.dataset.theme = event.matches ? 'light' : 'dark';
  drawTheme();
  app.board?.redraw();
});

function closeDrawer() {
  document.body.classList.remove('drawer');
  $('menu').firstElementChild?.setAttribute('aria-expanded', 'false');
}

function activityLink({ problem, app: name }) {
  if (!problem) return '';
  const board = app.listing.find(({ uid }) => uid === 'ragtide-problems') || app.listing.find(({ uid }) => uid === 'ragtide-application');
  if (!board) return '';
  const chosen = { app: name, problem, problem_id: problem };
  const kept = Object.fromEntries(Object.entries(chosen).filter(([key, value]) => value && board.variables.includes(key)));
  return `/d/${encodeURIComponent(board.uid)}?${variableParameters(kept)}`;
}

function startControls() {
  drawTheme();
  const narrow = () => window.matchMedia('(max-width: 820px)').matches;
  const menu = iconButton('menu', 'Dashboards', () => {
    const name = narrow() ? 'drawer' : 'wide';
    const on = document.body.classList.toggle(name);
    menu.setAttribute('aria-expanded', String(narrow() ? on : !on));
    if (!narrow()) remember('wide', on ? 'yes' : '');
    if (narrow() && on) $('dashboards').querySelector('a')?.focus();
  }, { 'aria-controls': 'navigation', 'aria-expanded': String(!narrow()) });
  document.body.classList.toggle('wide', remembered('wide', '') === 'yes');
  $('menu').replaceChildren(menu);
  $('help').replaceChildren(iconButton('help', 'Keyboard (?)', showKeys));
  $('skip').addEventListener('click', (event) => {
    event.preventDefault(); // a hash would be another address
    $('board').focus();
  });
  $('shade').addEventListener('click', closeDrawer);
  $('solo').addEventListener('click', () => app.board?.view(null));
  $('filter').addEventListener('input', () => {
    const count = app.board?.filter($('filter').value);
    $('status').textContent = $('filter').value ? `${count} panels` : '';
  });
  $('filter').addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    $('filter').value = '';
    app.board?.filter('');
    $('filter').blur();
    event.stopPropagation();
  });
  listenToKeys({
    '/': () => $('filter').focus(),
    t: () => document.querySelector('.time-button')?.click(),
    r: () => refreshNow(),
    z: () => app.board?.setRange(zoomedOut(app.board.range)),
    '[': () => app.board?.setRange(shifted(app.board.range, -1)),
    ']': () => app.board?.setRange(shifted(app.board.range, 1)),
    d: () => {
      if (narrow()) document.body.classList.add('drawer');
      else document.body.classList.remove('wide');
      $('dashboards').querySelector('a')?.focus();
    },
    Escape: () => (document.body.classList.contains('drawer') ? closeDrawer() : app.board?.solo && app.board.view(null)),
  });
}

startControls();
const listed = getJson('/api/dashboards');
const routed = route();
try {
  const { dashboards, demo } = await listed;
  app.listing = dashboards;
  drawNavigation();
  new Activity($('activity'), { demo, link: activityLink });
} catch (error) {
  fail(error);
}
await routed;
