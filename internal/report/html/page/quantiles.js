// @ts-check
// Durations by percentile, as HdrHistogram plots them. x is 1 / (1 − q), so p90, p99 and p99.9 are at equal distances.
import uPlot from 'uplot';

import { axis, axisSize, lineColor, withUnit } from './theme.js';
import { describe } from './timeline.js';

/** @import { Chart, Time } from './page.types.js' */

/** The lowest value of a chart in ms. Both axes are logarithmic, so they cannot show 0. */
const FLOOR = 0.01;

/**
 * Draws a chart by percentile into a container.
 *
 * @param {Chart} chart
 * @param {Time} _time
 * @param {HTMLElement} container
 */
export function drawQuantiles(chart, _time, container) {
  const series = chart.series ?? [];
  const joined = uPlot.join(
    series.map((s) => /** @type {import('uplot').AlignedData} */ ([s.at, s.values.map((v) => Math.max(v ?? FLOOR, FLOOR))])),
    series.map(() => [0, 2]),
  );
  const plot = new uPlot(
    {
      width: container.clientWidth,
      height: 260,
      cursor: { drag: { x: false, y: false } },
      series: [
        { label: 'percentile', value: (_, v) => (v === null ? '–' : percentile(v)) },
        ...series.map((s, i) => ({
          label: s.name, stroke: lineColor(i), width: 1.5, spanGaps: true, points: { show: s.at.length < 3 },
          value: (/** @type {import('uplot')} */ _, /** @type {number | null} */ v) => withUnit(v, chart.unit),
        })),
      ],
      axes: [
        { ...axis(), size: 28, values: (_, ticks) => ticks.map((v) => (v !== null && isDecade(v) ? percentile(v) : '')) },
        { ...axis(), size: axisSize, values: (_, ticks) => ticks.map((v) => (v !== null && isDecade(v) ? withUnit(v, chart.unit) : '')) },
      ],
      scales: { x: { time: false, distr: 3 }, y: { distr: 3, range: (_, min, max) => [decade(min, Math.floor), decade(max, Math.ceil)] } },
    },
    joined,
    container,
  );
  describe(plot, chart);
  return plot;
}

/**
 * Returns the power of ten below or above a value.
 *
 * @param {number} v
 * @param {(v: number) => number} round
 */
function decade(v, round) {
  return 10 ** round(Math.log10(Math.max(v, FLOOR)));
}

/**
 * Reports whether a value is a power of ten.
 *
 * @param {number} v
 */
function isDecade(v) {
  const power = Math.log10(v);
  return Math.abs(power - Math.round(power)) < 1e-6;
}

/**
 * Returns the name of a percentile, such as p99.9.
 *
 * @param {number} x 1 / (1 − q)
 */
function percentile(x) {
  const nines = Math.max(Math.ceil(Math.log10(x)) - 1, 0);
  return `p${Number((100 * (1 - 1 / x)).toFixed(nines + 1))}`;
}
