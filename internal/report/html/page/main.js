// @ts-check
// Draws the charts of the page, and hands out its files. All text of the page is in its HTML
// already: nothing here writes HTML.
import 'uplot/dist/uPlot.min.css';

import { drawHeatmap } from './heatmap.js';
import { drawQuantiles } from './quantiles.js';
import { download } from './download.js';
import { linkMoments } from './moment.js';
import { drawTimeline } from './timeline.js';

/** @import { Data } from './page.types.js' */

const data = /** @type {Data} */ (JSON.parse(document.getElementById('page-data')?.textContent ?? '{}'));

const draw = { timeline: drawTimeline, quantiles: drawQuantiles, heatmap: drawHeatmap };

/** @type {import('uplot')[]} */
const plots = [];
/** @type {import('uplot')[]} */
const overTime = [];

for (const figure of document.querySelectorAll('figure[data-chart]')) {
  const chart = data.charts[/** @type {HTMLElement} */ (figure).dataset.chart ?? ''];
  const container = /** @type {HTMLElement} */ (figure.querySelector('.plot'));
  const plot = draw[chart.kind](chart, data.time, container);
  plots.push(plot);
  if (chart.kind !== 'quantiles') {
    overTime.push(plot);
  }
  new ResizeObserver(() => fit(plot, container)).observe(container);
}

linkMoments(overTime, data.time);

for (const button of document.querySelectorAll('button[data-file]')) {
  const name = /** @type {HTMLElement} */ (button).dataset.file ?? '';
  button.addEventListener('click', () => download(name, data.files[name]));
}

/**
 * @param {import('uplot')} plot
 * @param {HTMLElement} container
 */
function fit(plot, container) {
  if (container.clientWidth !== plot.width) {
    plot.setSize({ width: container.clientWidth, height: plot.height });
  }
}

const repaint = () => plots.forEach((plot) => plot.redraw(false));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
matchMedia('print').addEventListener('change', repaint);

// uPlot draws in microtasks; this one comes after them.
queueMicrotask(() => {
  performance.mark('drawn');
  document.documentElement.dataset.drawn = String(plots.length);
});
