// One big number, or one per series.

import { faded, markColor, readableOn, textColor } from '../colors.js';
import { el } from '../dom.js';
import { display, reduce } from '../fields.js';

const MOST = 24;

export function draw(view, frames) {
  const { panel } = view;
  const { reduceOptions = {}, colorMode = 'value', textMode = 'auto', graphMode = 'none' } = panel.options || {};
  const tiles = tilesOf(frames, reduceOptions).slice(0, MOST);
  const named = textMode.includes('name') || (textMode === 'auto' && tiles.length > 1);
  const shown = tiles.map((tile) => {
    const { text, color, none } = display(tile.field, tile.value);
    const link = view.links(tile.field, { ...tile, text })[0];
    const words = textMode === 'name' ? tile.field.displayName : text || panel.fieldConfig?.defaults?.noValue || 'no data';
    const plain = none || !color || color === 'text' || colorMode === 'none';
    const style = colorMode.startsWith('background') && !plain
      ? { background: markColor(color), color: readableOn(markColor(color)) }
      : plain ? {} : { color: textColor(color) };
    const size = words.length > 16 ? 'long' : '';
    const value = el(link ? 'a' : 'span', { class: `stat-value ${size} ${none ? 'none' : ''}`, ...(link ? { href: link.href, title: link.title } : {}), style: colorMode.startsWith('background') ? { color: 'inherit' } : style }, words);
    value.style.setProperty('--signs', Math.max(words.length, 3));
    const spark = graphMode === 'area' ? sparkline(tile, color) : null;
    return el('div', { class: 'stat', style: colorMode.startsWith('background') ? style : {} }, named && textMode !== 'name' ? el('span', { class: 'stat-name' }, tile.field.displayName) : null, value, spark);
  });
  view.place([el('div', { class: 'stats' }, shown.length ? shown : el('div', { class: 'stat' }, el('span', { class: 'stat-value none' }, panel.fieldConfig?.defaults?.noValue || 'no data')))]);
}

function tilesOf(frames, { calcs = ['lastNotNull'], values = false, fields = '', limit = MOST }) {
  const wanted = /^\/(.*)\/$/.exec(fields);
  const fits = (field) => (fields ? (wanted ? new RegExp(wanted[1]).test(field.displayName) : field.displayName === fields || field.name === fields) : field.type === 'number' || field.type === 'boolean');
  return frames.flatMap((frame) => {
    const time = frame.fields.find((field) => field.type === 'time');
    return frame.fields.filter((field) => (field !== time || fields) && fits(field) && !field.config.custom.hidden).flatMap((field) => {
      if (values) return field.values.slice(0, limit).map((value, row) => ({ field, frame, row, value }));
      const value = reduce(field.values, calcs[0]);
      return [{ field, frame, row: Math.max(field.values.lastIndexOf(value), 0), value }];
    });
  });
}

function sparkline({ field, frame }, color) {
  const numbers = field.values.map((value) => (typeof value === 'number' ? value : null));
  const known = numbers.filter((value) => value !== null);
  if (known.length < 2 || !frame.fields.some((one) => one.type === 'time')) return null;
  const canvas = el('canvas', { class: 'sparkline', width: 240, height: 40, 'aria-hidden': 'true' });
  const pen = canvas.getContext('2d');
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const x = (at) => (at / (numbers.length - 1)) * 240;
  const y = (value) => 37 - (high > low ? (value - low) / (high - low) : 0.5) * 34;
  pen.strokeStyle = markColor(color);
  pen.fillStyle = faded(markColor(color), 0.15);
  pen.lineWidth = 2;
  pen.beginPath();
  let begun = false;
  numbers.forEach((value, at) => {
    if (value === null) return;
    begun ? pen.lineTo(x(at), y(value)) : pen.moveTo(x(at), y(value));
    begun = true;
  });
  pen.stroke();
  return canvas;
}
