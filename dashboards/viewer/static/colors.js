// Grafana's names of colours in the two themes. Marks (lines, bars) need a contrast of 3 against a panel, texts 4.5.

const MARKS = {
  dark: { green: '#5fbf7a', yellow: '#e8c547', orange: '#ff9830', red: '#f2576b', blue: '#5c94f5', purple: '#b587e8', text: '#9aa2ad', gray: '#7d8590' },
  light: { green: '#2b8a4b', yellow: '#a37b00', orange: '#c96a00', red: '#d1303f', blue: '#2f6fd6', purple: '#8547c9', text: '#6a717c', gray: '#7a828d' },
};
const TEXTS = {
  dark: { green: '#6ccf8e', yellow: '#f2d35e', orange: '#ffa94d', red: '#ff8291', blue: '#82aeff', purple: '#c9a3f2', text: '#a9b1bc', gray: '#a9b1bc' },
  light: { green: '#1c7038', yellow: '#7a5c00', orange: '#9a5000', red: '#b8202f', blue: '#1f5cc0', purple: '#6f36b0', text: '#59606b', gray: '#59606b' },
};
// Far apart for people who see few colours, and none of the four that mean something.
const PALETTE = {
  dark: ['#6ea8fe', '#f0b35a', '#c792ea', '#56c8c8', '#e58fb6', '#b9c46a', '#8f9bff', '#d99a75', '#7fd1a8', '#c5ccd6', '#5fa3c7', '#d6b4f0'],
  light: ['#2f6fd6', '#b86e00', '#8547c9', '#00838a', '#b8397a', '#6d7a00', '#4c55c9', '#a4562a', '#1f8a5b', '#5b6470', '#1e6f99', '#9a5fc0'],
};
const SHADES = /^(?:super-light|light|semi-dark|dark)-/;

const themeName = () => document.documentElement.dataset.theme || 'dark';

/** A colour of lines, bars and areas. */
export function markColor(name) {
  return named(MARKS, name);
}

/** A colour of text on a panel. */
export function textColor(name) {
  return named(TEXTS, name);
}

function named(table, name) {
  const colors = table[themeName()];
  if (!name) return colors.text;
  if (name === 'transparent') return 'rgba(0,0,0,0)';
  const place = /^palette-(\d+)$/.exec(name);
  if (place) return table === MARKS ? paletteColor(Number(place[1])) : colors.text;
  return colors[name.replace(SHADES, '')] || (/^#[0-9a-f]{3,8}$/i.test(name) ? name : colors.text);
}

/** The nth colour of series that mean nothing by their colour. */
export function paletteColor(index) {
  const colors = PALETTE[themeName()];
  return colors[index % colors.length];
}

/** The colour with this opacity from 0 to 1. */
export function faded(color, alpha) {
  const [r, g, b] = channels(color);
  return `rgba(${r}, ${g}, ${b}, ${alpha})`;
}

/** Black or white, whichever reads better on the colour. */
export function readableOn(color) {
  const [r, g, b] = channels(color).map((one) => {
    const share = one / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? '#0b0d10' : '#ffffff';
}

/** The colour between two, at a share from 0 to 1. */
export function mixed(from, to, share) {
  const [a, b] = [channels(from), channels(to)];
  return `rgb(${a.map((one, at) => Math.round(one + (b[at] - one) * share)).join(', ')})`;
}

function channels(color) {
  const hex = /^#([0-9a-f]{3,8})$/i.exec(color);
  if (hex) {
    const digits = hex[1].length < 6 ? [...hex[1]].map((one) => one + one).join('') : hex[1];
    return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
  }
  return (color.match(/[\d.]+/g) || [0, 0, 0]).slice(0, 3).map(Number);
}

/** A colour that the stylesheet names. */
export function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
