// @ts-check
// Updates the page of a run in progress. The server sends the changed parts of the page as HTML, from the template of the
// report. At the end of the run the page loads the report. This module writes only one text: the state of the connection.

/** @import { Data, Part } from './page.types.js' */

/**
 * Time without an event after which the page reconnects, because a broken connection may cause no error. Events are sent
 * each second.
 */
const SILENT_MS = 4000;

/** Time limit of an attempt to connect. */
const CONNECT_TIMEOUT_MS = 3000;

/**
 * Keeps the page up to date until the run has ended.
 *
 * @param {Data} data the data of the page
 * @param {(parts: Record<string, Part>) => void} show draws the charts of changed parts
 */
export function follow(data, show) {
  let lastEventId = data.live ?? '';
  let lastEventAt = Date.now();
  let connectStart = Date.now();
  let isOver = false;
  // The viewer stays the same after a reconnect, because the server keeps the report for this viewer.
  const viewer = Math.random().toString(36).slice(2);
  /** @type {EventSource | undefined} */
  let source;

  function connect() {
    source?.close();
    const query = new URLSearchParams(location.search);
    query.set('id', lastEventId);
    query.set('viewer', viewer);
    connectStart = Date.now();
    source = new EventSource(`events?${query}`);
    source.addEventListener('parts', (e) => {
      const parts = /** @type {Record<string, Part>} */ (JSON.parse(e.data));
      lastEventId = e.lastEventId;
      apply(data, parts);
      show(parts);
      showState('');
      lastEventAt = Date.now();
    });
    source.addEventListener('report', () => {
      isOver = true;
      source?.close();
      loadReport();
    });
  }

  setInterval(() => {
    const silence = Date.now() - lastEventAt;
    if (isOver || silence < SILENT_MS) {
      return;
    }
    showState(`No data for ${Math.round(silence / 1000)} s; reconnecting. The run continues, and its report will be in the folder of the run.`);
    if (Date.now() - connectStart > CONNECT_TIMEOUT_MS) {
      connect();
    }
  }, 1000);
  connect();
}

/** Loads the report when the server responds. Until then the page stays as it is. */
async function loadReport() {
  try {
    const response = await fetch(location.href, { method: 'HEAD', cache: 'no-store' });
    if (response.ok) {
      location.reload();
      return;
    }
  } catch {
    showState('The run has ended, but its report cannot be loaded; trying again. The report is in the folder of the run.');
  }
  setTimeout(loadReport, 1000);
}

/**
 * Shows the state of the connection.
 *
 * @param {string} text '' if the connection is open
 */
function showState(text) {
  const line = document.getElementById('link');
  if (line && line.textContent !== text) {
    line.textContent = text;
    line.hidden = text === '';
  }
}

/**
 * Replaces changed parts of the page, but keeps their charts, which show() updates.
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
    const figures = old?.querySelectorAll('figure') ?? [];
    old?.replaceWith(part.content);
    for (const figure of figures) { // keeps the zoom of the chart
      document.getElementById(figure.id)?.replaceWith(figure);
    }
  }
}
