// The strip of latest events: problems that opened or resolved, and in a demo its faults.

import { getJson } from './api.js';
import { el, icon } from './dom.js';
import { fromNow, formatTime } from './units.js';

const WORDS = { opened: 'Problem opened', resolved: 'Problem resolved', 'fault on': 'Fault on', 'fault off': 'Fault off' };

/** Keeps the strip up to date. `link(event)` is where an event leads. */
export class Activity {
  constructor(root, { demo, link }) {
    this.root = root;
    this.demo = demo;
    this.link = link;
    this.events = null;
    this.open = false;
    this.live = el('div', { class: 'visually-hidden', 'aria-live': 'polite' });
    this.strip = el('div', { class: 'strip' });
    root.append(this.strip, this.live);
    this.again();
  }

  async again() {
    clearTimeout(this.timer);
    if (!document.hidden) await this.load();
    this.timer = setTimeout(() => this.again(), this.demo ? 2000 : 5000);
  }

  async load() {
    let events;
    try {
      ({ events } = await getJson('/api/activity'));
    } catch (error) {
      this.root.hidden = false;
      this.strip.replaceChildren(el('span', { class: 'event' }, el('span', { class: 'event-dot warning' }), el('span', { class: 'event-says' }, `${error.message} ${error.todo || ''}`)));
      return;
    }
    const before = this.events;
    this.events = events;
    if (before) {
      const known = new Set(before.map(keyOf));
      const added = events.filter((event) => !known.has(keyOf(event)));
      if (added.length) this.live.textContent = added.slice(0, 3).map((event) => `${WORDS[event.kind]}: ${event.says}`).join('. ');
    }
    this.draw();
  }

  draw() {
    const { events } = this;
    this.root.hidden = !events.length && !this.demo;
    if (this.root.hidden) return;
    const fault = events.find((event) => event.kind.startsWith('fault'));
    const parts = [];
    if (this.demo) {
      const on = fault?.kind === 'fault on';
      parts.push(el('span', { class: `fault ${on ? 'on' : ''}` }, el('span', { class: `event-dot ${on ? 'fault-on' : 'fault-off'}` }), el('span', {}, on ? `Fault on: ${fault.says}` : 'Demo: no fault is on')));
    }
    const latest = events.find((event) => !event.kind.startsWith('fault'));
    parts.push(latest ? this.line({ ...latest, says: latest.metric || latest.says, full: latest.says }, 'event latest') : el('span', { class: 'event latest hint' }, this.demo ? 'No problem so far.' : ''));
    if (events.length > 1) {
      const toggle = el('button', { type: 'button', class: 'text-button', 'aria-expanded': String(this.open), onclick: () => {
        this.open = !this.open;
        this.draw();
        this.strip.querySelector('.text-button')?.focus();
      } }, `${events.length} events in the last hour`, icon('chevron'));
      parts.push(toggle);
    }
    const focused = this.strip.contains(document.activeElement) && document.activeElement.className;
    const scrolled = this.strip.querySelector('.events')?.scrollTop || 0;
    this.strip.replaceChildren(el('div', { class: 'strip-line' }, parts));
    if (this.open) {
      const list = el('ol', { class: 'events' }, events.map((event) => el('li', {}, this.line(event, 'event'))));
      this.strip.append(list);
      list.scrollTop = scrolled;
    }
    if (focused === 'text-button') this.strip.querySelector('.text-button')?.focus();
  }

  line(event, kind) {
    const { at, says, app, metric } = event;
    const href = this.link(event);
    const words = el(href ? 'a' : 'span', { class: 'event-says', ...(href ? { href } : {}) }, says);
    const about = [app, metric].filter(Boolean).join(' · ');
    return el('span', { class: kind, title: `${formatTime(at)}  ${about}: ${event.full ?? says}` },
      el('span', { class: `event-dot ${event.kind === 'opened' ? event.severity : event.kind.replace(' ', '-')}` }),
      el('strong', {}, WORDS[event.kind]), words, says === metric && about && el('span', { class: 'event-about' }, about),
      el('time', { dateTime: new Date(at).toISOString() }, fromNow(at)));
  }
}

const keyOf = ({ at, kind, problem, says }) => `${at} ${kind} ${problem || says}`;
