// One panel: its frame, its state (loading, error, no data) and what its menu does.

import { closePopover, el, iconButton, openMenu, popoverOf, safeHref } from './dom.js';
import { configure } from './fields.js';
import { toFrame, toText, transform } from './frames.js';
import { interpolate } from './links.js';
import { explain } from './tooltip.js';
import { intervalOf } from './timerange.js';
import { showQueries } from './query_dialog.js';
import { draw as barchart } from './panels/barchart.js';
import { draw as heatmap } from './panels/heatmap.js';
import { draw as stat } from './panels/stat.js';
import { draw as stateTimeline } from './panels/state_timeline.js';
import { draw as table } from './panels/table.js';
import { draw as text } from './panels/text.js';
import { draw as timeseries } from './panels/timeseries.js';
import { draw as xychart } from './panels/xychart.js';

export const TYPES = { barchart, heatmap, stat, 'state-timeline': stateTimeline, table, text, timeseries, xychart };
const TIMED = new Set(['heatmap', 'state-timeline', 'timeseries']);
const SHOW_LOADING_AFTER_MS = 250;

export class Panel {
  constructor(board, definition) {
    this.board = board;
    this.panel = definition;
    this.state = {};
    this.answers = new Map();
    this.stale = true;
    this.body = el('div', { class: 'panel-body' });
    this.note = el('div', { class: 'panel-note', hidden: true });
    this.element = this.build();
  }

  build() {
    const { panel } = this;
    const id = `panel-${panel.id}`;
    const info = panel.description ? el('button', { type: 'button', class: 'icon-button info', 'aria-label': `About ${panel.title}: ${panel.description}` }, '') : null;
    if (info) {
      info.append(iconButton('info', '', null).firstChild);
      explain(info, panel.description);
    }
    const menu = iconButton('more', `Menu of ${panel.title}`, (event) => (popoverOf(event.currentTarget) ? closePopover() : this.openMenu(event.currentTarget)), { class: 'icon-button panel-menu', 'aria-haspopup': 'menu', 'aria-expanded': 'false' });
    return el(
      'section',
      { class: `panel panel-${panel.type}`, id, 'aria-labelledby': `${id}-title`, dataset: { title: panel.title, id: String(panel.id) } },
      el('div', { class: 'panel-progress', 'aria-hidden': 'true' }),
      el('header', { class: 'panel-head' }, el('h3', { id: `${id}-title`, title: panel.title }, panel.title), info, el('span', { class: 'spacer' }), menu),
      this.body,
      this.note,
    );
  }

  openMenu(anchor) {
    const { board, panel } = this;
    const solo = board.solo === this;
    const linked = (panel.links || []).flatMap(({ title, url }) => {
      const href = safeHref(interpolate(url, board.scope()));
      return href ? [{ text: title, href }] : [];
    });
    openMenu(anchor, [
      ...linked,
      { text: solo ? 'Back to the dashboard' : 'View on the whole screen', run: () => board.view(solo ? null : this) },
      ...(panel.type === 'text' ? [] : [
        { text: 'View query', run: () => showQueries(board, this) },
        { text: 'Copy data', run: () => this.copy() },
        { text: 'Refresh this panel', run: () => this.load() },
      ]),
    ], `Menu of ${panel.title}`);
  }

  async copy() {
    const text = toText(this.frames || []);
    try {
      await navigator.clipboard.writeText(text);
      this.board.announce(`Copied the data of ${this.panel.title}.`);
    } catch {
      this.board.announce('The browser refused to copy.');
    }
  }

  /** Ask for the panel's data, together with what other panels ask at this moment. */
  load() {
    const { panel, board } = this;
    this.stale = false;
    if (panel.type === 'text') {
      this.drawText();
      return;
    }
    const width = Math.max(this.body.clientWidth || this.element.clientWidth || 600, 100);
    const interval = intervalOf(board.shown, panel.maxDataPoints || width, leastOf(panel.interval));
    const targets = (panel.targets || []).filter((target) => !target.hide && target.variables);
    if (!targets.length) {
      this.empty('This panel reads another data source than ClickHouse. Grafana shows it.');
      return;
    }
    const round = (this.round = (this.round || 0) + 1);
    const found = new Map();
    let problem = null;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.element.classList.add('loading'), SHOW_LOADING_AFTER_MS);
    for (const target of targets) {
      board.ask({ kind: 'panel', name: String(panel.id), ref: target.refId, interval_s: interval }, (answer) => {
        if (round !== this.round) return;
        if (answer instanceof Error) problem ||= answer;
        found.set(target.refId, answer);
        if (found.size < targets.length) return;
        clearTimeout(this.waiting);
        this.element.classList.remove('loading');
        if (problem) this.fail(problem);
        else this.show(targets, found);
      });
    }
  }

  show(targets, found) {
    const text = targets.map(({ refId }) => found.get(refId).text).join('');
    const same = text === this.text && !this.failed && !TIMED.has(this.panel.type) && !/dateTimeFromNow/.test(JSON.stringify(this.panel.fieldConfig));
    this.text = text;
    this.targets = targets;
    this.answers = found;
    if (!same) this.redraw();
    const cut = targets.map(({ refId }) => found.get(refId)).find((answer) => answer.cut);
    this.note.hidden = !cut;
    if (cut) this.note.textContent = `Only the first ${cut.rows.toLocaleString('en')} rows are shown (view.max_rows). Filter by a variable, or choose a shorter time range.`;
  }

  /** Draw a text, once: it asks for no data, and a reader keeps the place in it. */
  async drawText() {
    if (this.isDrawn) return;
    this.element.classList.add('loading');
    try {
      await text(this);
      this.isDrawn = true;
    } catch (error) {
      this.fail(notDrawn(error, 'Reload the page.'));
    } finally {
      this.element.classList.remove('loading');
    }
  }

  /** Draw what is there, e.g. in another theme or size. */
  redraw() {
    if (!this.targets) return;
    const { panel, board } = this;
    this.failed = false;
    try {
      const raw = this.targets.map(({ refId, format }) => toFrame(this.answers.get(refId).answer, refId, format === 0));
      this.frames = configure(transform(raw, panel.transformations), panel, board.scope());
      if (!this.frames.some((frame) => frame.length) && panel.type !== 'stat') this.empty();
      else TYPES[panel.type](this, this.frames);
    } catch (error) {
      this.fail(notDrawn(error));
    }
  }

  empty(why = '') {
    this.release();
    const text = why || this.panel.fieldConfig?.defaults?.noValue || 'No data in this time range.';
    this.body.classList.remove('beside');
    this.body.replaceChildren(el('div', { class: 'panel-state' }, el('p', {}, text)));
  }

  fail({ message, todo }) {
    this.failed = true;
    this.release();
    this.body.replaceChildren(
      el('div', { class: 'panel-state error', role: 'alert' }, el('p', { class: 'says' }, message), todo && el('p', { class: 'todo' }, todo),
        el('button', { type: 'button', class: 'button', onclick: () => this.load() }, 'Try again')),
    );
  }

  release() {
    this.state.plot?.destroy();
    delete this.state.plot;
  }

  /** Put the parts into the body, without a flicker where the first one is there already. */
  place(parts, beside = false) {
    this.body.classList.toggle('beside', beside);
    const [first, ...others] = parts;
    if (this.body.firstElementChild === first) {
      while (this.body.children.length > 1) this.body.lastElementChild.remove();
      this.body.append(...others);
    } else this.body.replaceChildren(...parts);
  }

  /** The links of a field at a place, ready to follow. */
  links(field, where) {
    const scope = { ...this.board.scope(), ...where, field };
    return (field.config.links || []).flatMap(({ title, url, targetBlank }) => {
      const href = safeHref(interpolate(url, scope));
      return href ? [{ href, title: interpolate(title || 'Open', scope), blank: targetBlank || !href.startsWith('/') }] : [];
    });
  }

  destroy() {
    this.round = -1;
    clearTimeout(this.waiting);
    this.release();
  }
}

function notDrawn(error, todo = 'Please report it, with the query (menu of the panel).') {
  console.error(error);
  return { message: `The viewer could not draw this panel: ${error.message}`, todo };
}

function leastOf(interval) {
  const found = /^>?(\d+)(s|m|h)$/.exec(interval || '');
  return found ? Number(found[1]) * { s: 1, m: 60, h: 3600 }[found[2]] : 1;
}
