// @ts-check
// Follows a run that goes on: the page takes what is new from where it came from, and becomes the report when that is made.
// All text comes laid out from there, by the template of the report; nothing here writes words into it but the state of
// the connection.

/** @import { Change, Data } from './page.types.js' */

/** News come each second. After so long without any, the connection is made anew: a cut one may say nothing of it. */
const SILENT_MS = 4000;

/** How long an attempt may take before the next one. */
const PATIENCE_MS = 3000;

/**
 * @param {Data} data that the page has
 * @param {(change: Change) => void} show draws what changed in it
 */
export function follow(data, show) {
  let last = data.live ?? '';
  let heard = Date.now();
  let tried = Date.now();
  let over = false;
  const viewer = Math.random().toString(36).slice(2); // the same when this page comes back: the report is kept for it
  /** @type {EventSource | undefined} */
  let source;

  function connect() {
    source?.close();
    const query = new URLSearchParams(location.search);
    query.set('id', last);
    query.set('viewer', viewer);
    tried = Date.now();
    source = new EventSource(`events?${query}`);
    for (const name of ['snapshot', 'delta']) {
      source.addEventListener(name, (e) => {
        const change = /** @type {Change} */ (JSON.parse(e.data));
        last = e.lastEventId;
        apply(data, change);
        show(change);
        say('');
        heard = Date.now();
        document.documentElement.dataset.event = last;
      });
    }
    source.addEventListener('report', () => {
      over = true;
      source?.close();
      becomeReport();
    });
  }

  setInterval(() => {
    const silent = Date.now() - heard;
    if (over || silent < SILENT_MS) {
      return;
    }
    say(`No news for ${Math.round(silent / 1000)} s: trying again. Nothing is lost meanwhile; the report is in the folder of the run when it is over.`);
    if (Date.now() - tried > PATIENCE_MS) {
      connect();
    }
  }, 1000);
  connect();
}

/** Loads the page again once it can be had: a network that is cut leaves what is shown. */
async function becomeReport() {
  try {
    const answer = await fetch(location.href, { method: 'HEAD', cache: 'no-store' });
    if (answer.ok) {
      location.reload();
      return;
    }
  } catch {
    say('The run is over, and its report cannot be reached: trying again. It is in the folder of the run.');
  }
  setTimeout(becomeReport, 1000);
}

/** @param {string} text of the state of the connection; '' where it is well */
function say(text) {
  const line = document.getElementById('link');
  if (line && line.textContent !== text) {
    line.textContent = text;
    line.hidden = text === '';
  }
}

/**
 * Puts a change into what the page has.
 *
 * @param {Data} data
 * @param {Change} change
 */
export function apply(data, change) {
  for (const [id, html] of Object.entries(change.parts ?? {})) {
    const part = document.createElement('template');
    part.innerHTML = html;
    document.getElementById(id)?.replaceWith(part.content);
  }
  if (change.time) {
    Object.assign(data.time, change.time);
  }
  Object.assign(data.charts, change.charts);
  for (const [id, bySeries] of Object.entries(change.points ?? {})) {
    for (const series of data.charts[id]?.series ?? []) {
      if (bySeries[series.name]) {
        merge(series, bySeries[series.name]);
      }
    }
  }
}

/**
 * Adds points to a series; each replaces the one of its index.
 *
 * @param {{ at: number[], values: (number | null)[] }} series
 * @param {{ at: number[], values: (number | null)[] }} fresh sorted
 */
function merge(series, fresh) {
  let from = series.at.length;
  while (from > 0 && series.at[from - 1] >= fresh.at[0]) {
    from--;
  }
  const tail = new Map(series.at.splice(from).map((at, i) => [at, series.values[from + i]]));
  series.values.length = from;
  fresh.at.forEach((at, i) => tail.set(at, fresh.values[i]));
  for (const [at, value] of [...tail].sort((a, b) => a[0] - b[0])) {
    series.at.push(at);
    series.values.push(value);
  }
}
