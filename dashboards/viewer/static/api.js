// Requests to the server: always to this host, always by name, never SQL.

/** An error with a sentence for people, and what they can do. */
export class Problem extends Error {
  constructor(says, todo = '') {
    super(says);
    this.todo = todo;
  }
}

async function answered(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: 'same-origin', ...options });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem('The viewer does not answer.', 'Is `ragtide view` still running?');
  }
  if (response.status === 401) {
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
    throw new Problem('The viewer asks for its token.', 'Log in again.');
  }
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new Problem(body.error || `The viewer answers with status ${response.status}.`, 'Reload the page.');
  }
  return response;
}

export const getJson = async (path) => (await answered(path)).json();

const post = (path, body, signal) =>
  answered(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal });

/** Ask for several queries at once; `onanswer(key, {answer, rows, cut} or Problem)` is called as each is there. */
export async function query(body, onanswer, signal) {
  const response = await post('/api/query', body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const { key, error, ...found } = JSON.parse(line);
      if (found.cut) found.answer.data.length = found.rows; // one more was sent, to tell that there are more
      onanswer(key, error ? new Problem(error.says, error.do) : { ...found, text: line });
    }
  }
}

/** The statements of queries as the server would run them, by key. */
export const statements = async (body) => (await post('/api/sql', body)).json();
