// One dashboard on the page: rows and panels, their queries in batches, annotations, filter and whole-screen view.

import { Problem, query } from './api.js';
import { el, icon } from './dom.js';
import { Panel } from './panel.js';
import { isRelative, resolveRange } from './timerange.js';
import { remember, remembered } from './state.js';
import { Variables } from './variables.js';

const AHEAD = '300px'; // below the window, panels are asked for before one scrolls to them

export class Board {
  /** `given`: the values that the address has. `onchange(board)` is called when the address must follow. */
  constructor(document_, given, range, { onchange, onvariables, announce }) {
    this.document = document_;
    this.uid = document_.uid;
    this.variables = new Variables(document_.templating.list, given, (name) => remembered(`variable-${name}`, ''));
    this.range = range;
    this.annotations = [];
    this.onchange = onchange;
    this.onvariables = onvariables;
    this.announce = announce;
    this.pending = [];
    this.flight = new AbortController();
    this.shown = resolveRange(range) || resolveRange(document_.time);
    this.panels = [];
    this.observer = new IntersectionObserver((entries) => entries.forEach((entry) => this.seen(entry)), { rootMargin: `0px 0px ${AHEAD} 0px` });
    this.element = el('div', { class: 'board' }, this.sections());
  }

  sections() {
    const sections = [];
    let section = null;
    const begin = (row) => {
      section = { row, panels: [] };
      sections.push(section);
    };
    for (const one of this.document.panels) {
      if (one.type === 'row') {
        begin(one);
        section.panels.push(...(one.panels || []));
      } else {
        if (!section) begin(null);
        section.panels.push(one);
      }
    }
    return sections.map((one) => this.section(one));
  }

  section({ row, panels }) {
    const top = Math.min(...panels.map((one) => one.gridPos.y));
    const made = panels.map((definition) => {
      const panel = new Panel(this, definition);
      const { x, y, w, h } = definition.gridPos;
      Object.assign(panel.element.style, { gridColumn: `${x + 1} / span ${w}`, gridRow: `${y - top + 1} / span ${h}` });
      panel.element.style.setProperty('--rows', h);
      panel.element.panel = panel;
      this.panels.push(panel);
      this.observer.observe(panel.element);
      return panel;
    });
    made.sort((a, b) => a.panel.gridPos.y - b.panel.gridPos.y || a.panel.gridPos.x - b.panel.gridPos.x);
    const grid = el('div', { class: 'grid' }, made.map((panel) => panel.element));
    if (!row) return el('div', { class: 'row' }, grid);
    const closed = row.collapsed || (row.panels || []).length > 0;
    const id = `row-${row.id}`;
    grid.id = id;
    const toggle = el('button', { type: 'button', class: 'row-title', 'aria-expanded': String(!closed), 'aria-controls': id, onclick: () => this.toggle(element) }, icon('chevron'), el('span', {}, row.title), el('span', { class: 'hint' }, closed ? `${panels.length} ${panels.length === 1 ? 'panel' : 'panels'}` : ''));
    const element = el('div', { class: `row ${closed ? 'closed' : ''}`, dataset: { title: row.title } }, el('h2', { class: 'row-head' }, toggle), grid);
    grid.hidden = closed;
    return element;
  }

  toggle(row, open = row.classList.contains('closed')) {
    row.classList.toggle('closed', !open);
    row.querySelector('.row-title').setAttribute('aria-expanded', String(open));
    row.querySelector('.grid').hidden = !open;
  }

  scope() {
    return { variables: this.variables.values, range: this.range, uid: this.uid };
  }

  /** What every request says. */
  body(queries) {
    const { datasource: _, ...variables } = this.variables.values;
    return { uid: this.uid, from: this.shown.from, to: this.shown.to, variables, queries };
  }

  /** Ask for one query; all that is asked in one go is one request. */
  ask(one, onanswer) {
    if (!this.pending.length) setTimeout(() => this.flush());
    this.pending.push({ ...one, onanswer });
  }

  async flush() {
    const asked = this.pending.splice(0);
    const signal = this.flight.signal;
    this.open = (this.open || 0) + 1;
    this.element.setAttribute('aria-busy', 'true');
    const waiting = new Map(asked.map(({ onanswer }, at) => [String(at), onanswer]));
    const queries = asked.map(({ onanswer: _, ...one }, at) => ({ key: String(at), ...one }));
    try {
      await query(this.body(queries), (key, answer) => {
        const onanswer = waiting.get(key);
        waiting.delete(key);
        onanswer?.(answer);
      }, signal);
    } catch (error) {
      if (signal.aborted) return;
      for (const onanswer of waiting.values()) onanswer(error instanceof Problem ? error : new Problem('The connection to the viewer broke.', 'The panel asks again with the next refresh.'));
    } finally {
      this.open -= 1;
      this.element.setAttribute('aria-busy', String(this.busy));
    }
  }

  /** Whether an answer is still to come. */
  get busy() {
    return this.open > 0 || this.pending.length > 0;
  }

  /** Load everything anew: variables first where panels need one, panels at once where all have values. */
  async load() {
    this.flight.abort();
    this.flight = new AbortController();
    const signal = this.flight.signal;
    this.shown = resolveRange(this.range) || this.shown;
    this.variables.outdate();
    let begun = !this.variables.waiting;
    if (begun) this.loadData();
    for (let wave = this.variables.next(), round = 0; wave.length && round < 20; wave = this.variables.next(), round++) {
      const changed = await this.loadVariables(wave);
      if (signal.aborted) return;
      if (!this.variables.waiting && (changed || !begun)) {
        begun = true;
        this.loadData();
      }
    }
    if (!begun) this.loadData();
    this.element.setAttribute('aria-busy', String(this.busy)); // there may be nothing to ask for
    for (const name of this.variables.first) remember(`variable-${name}`, this.variables.values[name]);
    this.onvariables(this);
  }

  loadData() {
    this.loadPanels();
    this.loadAnnotations();
  }

  loadVariables(wave) {
    return new Promise((resolve) => {
      let left = wave.length;
      let changed = false;
      for (const { name } of wave) {
        this.ask({ kind: 'variable', name }, (answer) => {
          if (answer instanceof Error) {
            this.variables.options[name] ||= [];
            this.variables.loaded.add(name);
          } else if (this.variables.accept(name, answer.answer)) changed = true;
          if (--left) return;
          this.onvariables(this);
          resolve(changed);
        });
      }
    });
  }

  loadPanels() {
    for (const panel of this.panels) {
      panel.stale = true;
      if (panel.isSeen && !panel.element.closest('[hidden]')) panel.load();
    }
    this.loaded = true;
  }

  /** The same time again by the clock: only what is seen is asked for. */
  refresh() {
    return this.load();
  }

  seen({ target, isIntersecting }) {
    const { panel } = target;
    panel.isSeen = isIntersecting;
    if (isIntersecting && panel.stale && this.loaded) panel.load();
  }

  loadAnnotations() {
    const wanted = this.document.annotations.list.filter((one) => one.enable && one.variables);
    const found = [];
    let left = wanted.length;
    for (const { name, iconColor } of wanted) {
      this.ask({ kind: 'annotation', name }, (answer) => {
        if (!(answer instanceof Error)) found.push(...annotationsOf(answer.answer, name, iconColor || 'red'));
        if (--left) return;
        const same = JSON.stringify(found) === JSON.stringify(this.annotations);
        this.annotations = found;
        if (!same) for (const panel of this.panels) panel.state.plot?.u?.redraw(false);
      });
    }
  }

  setVariable(name, value) {
    this.variables.set(name, value);
    this.onchange(this);
    this.load();
  }

  setRange(range) {
    this.range = range;
    this.onchange(this);
    this.load();
  }

  get moves() {
    return isRelative(this.range);
  }

  /** Show one panel on the whole screen, or (null) all. */
  view(panel, tell = true) {
    this.solo = panel;
    this.element.classList.toggle('solo', Boolean(panel));
    for (const one of this.panels) one.element.classList.toggle('is-solo', one === panel);
    for (const row of this.element.querySelectorAll('.row')) {
      const holds = panel && row.contains(panel.element);
      row.classList.toggle('is-solo', Boolean(holds));
      if (holds && row.querySelector('.grid').hidden) this.toggle(row, true);
    }
    if (tell) this.onchange(this);
    panel?.element.scrollIntoView?.({ block: 'nearest' });
  }

  panelById(id) {
    return this.panels.find((one) => String(one.panel.id) === String(id)) || null;
  }

  /** Show only panels and rows whose titles hold the text; open rows in which one does. */
  filter(text) {
    const wanted = text.trim().toLowerCase();
    const holds = (title) => title.toLowerCase().includes(wanted);
    let count = 0;
    for (const row of this.element.querySelectorAll('.row')) {
      const all = wanted && holds(row.dataset.title || '');
      let some = false;
      for (const element of row.querySelectorAll('.panel')) {
        const fits = !wanted || all || holds(element.dataset.title);
        element.hidden = !fits;
        some ||= fits;
        count += fits ? 1 : 0;
      }
      row.hidden = !some && Boolean(wanted);
      if (!row.dataset.title) continue;
      row.dataset.before ??= String(!row.classList.contains('closed'));
      if (wanted && some && !all) this.toggle(row, true);
      if (!wanted) {
        this.toggle(row, row.dataset.before === 'true');
        delete row.dataset.before;
      }
    }
    return count;
  }

  redraw() {
    for (const panel of this.panels) panel.redraw();
  }

  destroy() {
    this.flight.abort();
    this.observer.disconnect();
    for (const panel of this.panels) panel.destroy();
  }
}

function annotationsOf({ meta, data }, name, color) {
  const at = Object.fromEntries(meta.map((column, index) => [column.name.toLowerCase(), index]));
  const ms = (value) => (typeof value === 'number' ? value : Date.parse(/[TZ]/.test(value) ? value : `${value.replace(' ', 'T')}Z`));
  return data.flatMap((row) => {
    const from = row[at.time] === null ? NaN : ms(row[at.time]);
    if (Number.isNaN(from)) return [];
    const end = row[at.timeend];
    const tags = String(row[at.tags] ?? '').split(',').map((tag) => tag.trim()).filter(Boolean);
    const to = end ? Math.max(ms(end), from) : from;
    return [{ name, color, from, to, isOpen: tags.includes('open'), title: row[at.title] ?? '', text: row[at.text] ?? '', tags }];
  });
}
