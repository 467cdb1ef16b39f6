// The address is the state: dashboard, time range, refresh, variables, and the panel on the whole screen.

/** What the address says. `variables`: name to a text or, where it stands several times, texts. */
export function readAddress(url = location.href) {
  const { pathname, searchParams } = new URL(url, location.origin);
  const variables = {};
  for (const [name, value] of searchParams) {
    if (!name.startsWith('var-')) continue;
    const key = name.slice(4);
    variables[key] = key in variables ? [variables[key], value].flat() : value;
  }
  const found = /^\/d\/([^/]+)/.exec(pathname);
  return {
    uid: found ? decodeURIComponent(found[1]) : '',
    from: searchParams.get('from'),
    to: searchParams.get('to'),
    refresh: searchParams.get('refresh'),
    panel: searchParams.get('viewPanel'),
    variables,
  };
}

/** The address of a dashboard with this state. */
export function address({ uid, range, refresh, panel, variables = {} }) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(variables)) {
    if (name === 'datasource') continue;
    for (const one of [value].flat()) parameters.append(`var-${name}`, one);
  }
  if (range) {
    parameters.set('from', range.from);
    parameters.set('to', range.to);
  }
  if (refresh !== undefined && refresh !== null) parameters.set('refresh', refresh);
  if (panel) parameters.set('viewPanel', panel);
  const query = parameters.toString();
  return `/d/${encodeURIComponent(uid)}${query ? `?${query}` : ''}`;
}

/** Something remembered on this machine; `fallback` where nothing is, or storage is off. */
export function remembered(name, fallback) {
  try {
    return localStorage.getItem(`ragtide-${name}`) ?? fallback;
  } catch {
    return fallback;
  }
}

/** Remember it. */
export function remember(name, value) {
  try {
    localStorage.setItem(`ragtide-${name}`, value);
  } catch {
    // Storage is off: it holds until the page is left.
  }
}

/** Milliseconds of a refresh interval such as 30s or 5m; 0: off. */
export function refreshMs(text) {
  const found = /^(\d{1,5})(s|m|h)$/.exec(text || '');
  return found ? Math.max(1000, Number(found[1]) * { s: 1e3, m: 6e4, h: 36e5 }[found[2]]) : 0;
}
