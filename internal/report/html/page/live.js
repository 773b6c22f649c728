// @ts-check
// Follows a run that goes on: the server sends the parts of the page that changed, as HTML of the template of the report. When
// the report exists, the page loads it. The only text that is written here is the state of the connection.

/** @import { Data, Part } from './page.types.js' */

/** Events come each second. After this time without one the page connects again: a broken connection may give no error. */
const SILENT_MS = 4000;

/** How long an attempt to connect may take before the next one. */
const PATIENCE_MS = 3000;

/**
 * @param {Data} data that the page has
 * @param {(parts: Record<string, Part>) => void} show draws the charts that changed
 */
export function follow(data, show) {
  let last = data.live ?? '';
  let heard = Date.now();
  let tried = Date.now();
  let over = false;
  const viewer = Math.random().toString(36).slice(2); // the same after a reconnect: the server keeps the report for this viewer
  /** @type {EventSource | undefined} */
  let source;

  function connect() {
    source?.close();
    const query = new URLSearchParams(location.search);
    query.set('id', last);
    query.set('viewer', viewer);
    tried = Date.now();
    source = new EventSource(`events?${query}`);
    source.addEventListener('parts', (e) => {
      const parts = /** @type {Record<string, Part>} */ (JSON.parse(e.data));
      last = e.lastEventId;
      apply(data, parts);
      show(parts);
      say('');
      heard = Date.now();
    });
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
    say(`No news for ${Math.round(silent / 1000)} s: trying again. The run continues; its report will be in the folder of the run.`);
    if (Date.now() - tried > PATIENCE_MS) {
      connect();
    }
  }, 1000);
  connect();
}

/** Loads the report once the server answers: a broken network leaves what is shown. */
async function becomeReport() {
  try {
    const answer = await fetch(location.href, { method: 'HEAD', cache: 'no-store' });
    if (answer.ok) {
      location.reload();
      return;
    }
  } catch {
    say('The run is over, and its report cannot be loaded: trying again. It is in the folder of the run.');
  }
  setTimeout(becomeReport, 1000);
}

/** @param {string} text the state of the connection; '' if it is open */
function say(text) {
  const line = document.getElementById('link');
  if (line && line.textContent !== text) {
    line.textContent = text;
    line.hidden = text === '';
  }
}

/**
 * Replaces the parts of the page that changed, and their charts.
 *
 * @param {Data} data
 * @param {Record<string, Part>} parts by the id of the element that each replaces
 */
function apply(data, parts) {
  for (const [id, { html, time, charts }] of Object.entries(parts)) {
    Object.assign(data.time, time);
    Object.assign(data.charts, charts);
    const part = document.createElement('template');
    part.innerHTML = html;
    const old = document.getElementById(id);
    const drawn = old?.querySelectorAll('figure') ?? [];
    old?.replaceWith(part.content);
    for (const figure of drawn) { // with its zoom
      document.getElementById(figure.id)?.replaceWith(figure);
    }
  }
}
