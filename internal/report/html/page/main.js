// @ts-check
// The script of the page. It draws the charts, offers the files for download, and updates the page of a run in progress.
// The script generates no HTML.
import 'uplot/dist/uPlot.min.css';

import { drawHeatmap } from './heatmap.js';
import { drawQuantiles } from './quantiles.js';
import { download } from './download.js';
import { follow } from './live.js';
import { linkMoments } from './moment.js';
import { drawTimeline, update } from './timeline.js';

/** @import { Data } from './page.types.js' */

const data = /** @type {Data} */ (JSON.parse(document.getElementById('page-data')?.textContent ?? '{}'));

const draw = { timeline: drawTimeline, quantiles: drawQuantiles, heatmap: drawHeatmap };

/** @type {Map<string, import('uplot')>} by the id of the chart */
const plots = new Map();

/** Draws the charts that have not been drawn. */
function drawAll() {
  for (const figure of document.querySelectorAll('figure[data-chart]')) {
    const chart = data.charts[/** @type {HTMLElement} */ (figure).dataset.chart ?? ''];
    const container = /** @type {HTMLElement} */ (figure.querySelector('.plot'));
    if (!chart || container.hasChildNodes()) {
      continue;
    }
    const plot = draw[chart.kind](chart, data.time, container);
    plots.set(chart.id, plot);
    new ResizeObserver(() => fit(plot, container)).observe(container);
  }
}
drawAll();

linkMoments(() => [...plots].filter(([id]) => data.charts[id].kind !== 'quantiles').map(([, plot]) => plot), data.time);

for (const button of document.querySelectorAll('button[data-file]')) {
  const name = /** @type {HTMLElement} */ (button).dataset.file ?? '';
  button.addEventListener('click', () => download(name, data.files[name]));
}

/**
 * Sets the width of a chart to the width of its container.
 *
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

// uPlot draws in microtasks. This microtask runs after them.
queueMicrotask(() => {
  performance.mark('drawn');
  document.documentElement.dataset.drawn = String(plots.size);
});

if (data.live !== undefined) {
  follow(data, (parts) => {
    for (const chart of Object.values(parts).flatMap((part) => Object.values(part.charts ?? {}))) {
      const plot = plots.get(chart.id);
      if (plot?.series.length === (chart.series ?? []).length + 1) {
        update(plot, chart, data.time);
      } else {
        plot?.destroy(); // the number of its lines has changed
      }
    }
    drawAll();
  });
}
