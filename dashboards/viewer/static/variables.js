// Variables of a dashboard: values, options by query, and which depends on which.

const ALL = '$__all';

/** The variables of one dashboard. Values are texts, or lists of texts where several may be chosen. */
export class Variables {
  /** `last(name)`: the value that was chosen last on this machine, where the dashboard starts with none. */
  constructor(list, given, last = () => '') {
    this.first = []; // whose first value is the one that their query finds first
    this.list = list;
    this.byName = new Map(list.map((one) => [one.name, one]));
    this.values = {};
    this.options = {};
    this.loaded = new Set();
    this.explicit = new Set(); // set by the address or by hand: kept though its query does not find it
    for (const one of list) {
      if (one.type === 'custom') this.options[one.name] = (one.options || []).map(({ text, value }) => ({ label: flat(text), value: flat(value) }));
      let start = one.name in given ? given[one.name] : this.start(one);
      if (one.type === 'query' && !one.multi && this.start(one) === '') {
        this.first.push(one.name);
        if (start === '') start = last(one.name);
      }
      this.values[one.name] = this.shaped(one, start);
      if (one.name in given) this.explicit.add(one.name);
    }
  }

  start(one) {
    if (one.type === 'textbox') return one.current?.value ?? one.query ?? '';
    return one.current?.value ?? (one.includeAll ? ALL : '');
  }

  shaped(one, value) {
    const values = [value].flat().map((each) => (one.includeAll && each === 'All' ? ALL : String(each ?? '')));
    if (!one.multi) return values[0] ?? '';
    if (values.includes(ALL) || (!values.some(Boolean) && one.includeAll)) return [ALL];
    return values;
  }

  /** Set by hand; what depends on it is chosen anew where it no longer fits. */
  set(name, value) {
    this.values[name] = this.shaped(this.byName.get(name), value);
    this.explicit = new Set([name]);
  }

  /** Whether a variable has no value that its query could give. */
  get waiting() {
    return this.list.some((one) => one.type === 'query' && !one.multi && this.values[one.name] === '' && !(one.name in this.options));
  }

  /** Forget which options are loaded, e.g. because the time range changed. */
  outdate() {
    this.loaded = new Set();
  }

  /** Query variables to ask for next: those that depend only on variables with a value, or on variables loaded before. */
  next() {
    const left = this.list.filter((one) => one.type === 'query' && !this.loaded.has(one.name));
    const known = (name) => !this.byName.has(name) || this.loaded.has(name) || this.byName.get(name).type !== 'query' || String(this.values[name]) !== '';
    const ready = left.filter((one) => one.variables.every((name) => name === one.name || known(name)));
    return ready.length ? ready : left;
  }

  /** Take the options that a query found; true if the value had to change. */
  accept(name, answer) {
    const one = this.byName.get(name);
    const seen = new Set();
    const found = answer.data
      .map((row) => ({ value: String(row[0] ?? ''), label: String(row[1] ?? row[0] ?? '') }))
      .filter(({ value }) => !seen.has(value) && seen.add(value));
    this.options[name] = found;
    const before = JSON.stringify(this.values[name]);
    const exists = (value) => value === ALL || found.some((option) => option.value === value || option.label === value);
    // A plain name in the address stands for the option of that label.
    const known = (value) => (found.some((option) => option.value === value) ? value : found.find((option) => option.label === value)?.value ?? value);
    if (one.multi) {
      let kept = this.values[name].map(known);
      if (!this.explicit.has(name)) kept = kept.filter(exists);
      this.values[name] = kept.length ? kept : [one.includeAll ? ALL : found[0]?.value ?? ''];
    } else if (exists(this.values[name])) this.values[name] = known(this.values[name]);
    else if (!this.explicit.has(name) || this.values[name] === '') this.values[name] = one.includeAll ? ALL : found[0]?.value ?? '';
    this.loaded.add(name);
    const changed = JSON.stringify(this.values[name]) !== before;
    if (changed) for (const other of this.list) if (other.variables?.includes(name) && other.name !== name) this.loaded.delete(other.name);
    return changed;
  }

  /** How the chosen value reads. */
  label(name) {
    const values = [this.values[name]].flat();
    if (values.includes(ALL)) return 'All';
    const labels = values.map((value) => this.options[name]?.find((option) => option.value === value)?.label ?? value);
    return labels.length > 2 ? `${labels.slice(0, 2).join(', ')} + ${labels.length - 2}` : labels.join(', ');
  }
}

const flat = (value) => String([value].flat()[0] ?? '');

export { ALL };
