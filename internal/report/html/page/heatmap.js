// @ts-check
// Heat maps: counts by time and row. uPlot has no heat map, so this module draws the cells. uPlot provides axes, cursor
// and zoom.
import uPlot from 'uplot';

import { axis, axisSize, color } from './theme.js';
import { bands, clock, describe, lines, overTime, range, timeAxis } from './timeline.js';

/** @import { Chart, Heat, Time } from './page.types.js' */

/**
 * Draws a heat map into a container.
 *
 * @param {Chart} chart
 * @param {Time} time
 * @param {HTMLElement} container
 */
export function drawHeatmap(chart, time, container) {
  const heat = /** @type {Heat} */ (chart.heat);
  const width = heat.width * time.step;
  const xs = heat.counts.map((_, i) => time.from + i * width);
  const plot = new uPlot(
    {
      ...overTime(container, 90 + 15 * heat.rows.length),
      series: [
        { label: 'UTC', value: (_, v) => (v === null ? '–' : clock(v)) },
        { label: heat.items, points: { show: false }, value: (_u, _v, _s, i) => (i === null ? '–' : summary(heat, i)) },
      ],
      axes: [
        timeAxis(container),
        { ...axis(), size: axisSize, splits: () => heat.rows.map((_, i) => i + 0.5), values: () => heat.rows, grid: { show: false } },
      ],
      scales: { x: range(time), y: { range: [0, heat.rows.length] } },
      hooks: { drawClear: [(u) => bands(u, time)], draw: [(u) => cells(u, heat, xs, width), (u) => lines(u, time)] },
    },
    [xs, xs.map(() => null)],
    container,
  );
  describe(plot, chart);
  return plot;
}

/**
 * Draws the cells that have a count. The opacity depends on the logarithm of the count, because counts differ widely.
 *
 * @param {import('uplot')} u
 * @param {Heat} heat
 * @param {number[]} xs
 * @param {number} width in seconds
 */
function cells(u, heat, xs, width) {
  const { ctx } = u;
  const highest = Math.max(1, ...heat.counts.flat());
  const rgb = color('heat');
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  heat.counts.forEach((column, i) => {
    const left = u.valToPos(xs[i], 'x', true);
    const right = u.valToPos(xs[i] + width, 'x', true);
    column.forEach((n, row) => {
      if (n > 0) {
        const top = u.valToPos(row + 1, 'y', true);
        const bottom = u.valToPos(row, 'y', true);
        ctx.fillStyle = `rgb(${rgb} / ${15 + (85 * Math.log1p(n)) / Math.log1p(highest)}%)`;
        ctx.fillRect(left, top, Math.max(right - left, 1), bottom - top - 1);
      }
    });
  });
  ctx.restore();
}

/**
 * Returns the sum of a column, and its highest row with a count, for the legend.
 *
 * @param {Heat} heat
 * @param {number} i column
 */
function summary(heat, i) {
  const column = heat.counts[i] ?? [];
  const sum = column.reduce((a, b) => a + b, 0);
  const top = column.findLastIndex((n) => n > 0);
  if (sum === 0) {
    return 'none';
  }
  const bound = heat.rows[top].startsWith('>') ? heat.rows[top] : `up to ${heat.rows[top]}`;
  return `${sum.toLocaleString('en')}, ${bound}`;
}
