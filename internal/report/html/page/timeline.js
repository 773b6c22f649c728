// @ts-check
// Charts over the time of the run. They share a cursor and zoom together.
import uPlot from 'uplot';

import { axis, axisSize, color, lineColor, withUnit } from './theme.js';

/** @import { Chart, Series, Time } from './page.types.js' */

/** The lowest value of a logarithmic axis, which cannot show 0. */
const LOG_FLOOR = 0.1;

const utc = uPlot.fmtDate('{HH}:{mm}:{ss}');
const utcDate = uPlot.fmtDate('{MMM} {D}');
const DAY = 24 * 3600;

/**
 * Returns the time of day in UTC.
 *
 * @param {number} unix
 */
export function clock(unix) {
  return utc(uPlot.tzDate(new Date(unix * 1000), 'Etc/UTC'));
}

/**
 * Returns the month and the day in UTC.
 *
 * @param {number} unix
 */
function date(unix) {
  return utcDate(uPlot.tzDate(new Date(unix * 1000), 'Etc/UTC'));
}

/**
 * Draws a chart over time into a container.
 *
 * @param {Chart} chart
 * @param {Time} time
 * @param {HTMLElement} container
 */
export function drawTimeline(chart, time, container) {
  const series = chart.series ?? [];
  const plot = new uPlot(
    {
      ...overTime(container, 190),
      series: [{ label: 'UTC', value: (_, v) => (v === null ? '–' : time.n * time.step > DAY ? `${date(v)} ${clock(v)}` : clock(v)) }, ...series.map((s, i) => line(s, i, chart))],
      axes: [timeAxis(container), { ...axis(), size: axisSize, values: (_, ticks) => ticks.map((v) => (v === null ? '' : withUnit(v, chart.unit))) }],
      scales: { x: range(time), y: chart.log ? { distr: 3, range: logRange } : { range: fromZero } },
      hooks: { drawClear: [(u) => bands(u, time)], draw: [(u) => lines(u, time)] },
    },
    table(series, time, chart.log ? LOG_FLOOR : -Infinity),
    container,
  );
  describe(plot, chart);
  return plot;
}

/**
 * Draws the new points of a chart. A zoomed chart keeps its range; other charts show the whole run.
 *
 * @param {import('uplot')} plot
 * @param {Chart} chart
 * @param {Time} time
 */
export function update(plot, chart, time) {
  const x = plot.data[0];
  const { min: from = null, max: to = null } = plot.scales.x;
  const isZoomed = x.length > 0 && from !== null && to !== null && (from > x[0] || to < x[x.length - 1]);
  plot.setData(table(chart.series ?? [], time, chart.log ? LOG_FLOOR : -Infinity), false);
  const fullRange = range(time);
  plot.setScale('x', isZoomed ? { min: from, max: to } : { min: Number(fullRange.min), max: Number(fullRange.max) });
  describe(plot, chart);
}

/**
 * Returns the options that all charts over time share.
 *
 * @param {HTMLElement} container
 * @param {number} height
 */
export function overTime(container, height) {
  return {
    width: container.clientWidth,
    height,
    tzDate: (/** @type {number} */ unix) => uPlot.tzDate(new Date(unix * 1000), 'Etc/UTC'),
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: true },
      sync: { key: 'run', scales: /** @type {[string, null]} */ (['x', null]) },
      points: { size: 6 },
    },
    legend: { live: true },
    padding: /** @type {[number, null, null, null]} */ ([16, null, null, null]),
  };
}

/**
 * Returns the scale of the whole run.
 *
 * @param {Time} time
 */
export function range(time) {
  /** @type {import('uplot').Scale} */
  return { time: true, min: time.from, max: time.from + Math.max(time.n - 1, 1) * time.step };
}

/**
 * Returns an axis with the time of day, and with the date at midnight.
 *
 * @param {HTMLElement} container
 * @returns {import('uplot').Axis}
 */
export function timeAxis(container) {
  return {
    ...axis(),
    size: 28,
    space: container.clientWidth < 500 ? 60 : 80,
    values: (_, ticks, _index, _space, step) => ticks.map((v) => (v % DAY === 0 ? date(v) : clock(v).slice(0, step % 60 === 0 ? 5 : 8))),
  };
}

/**
 * Returns the options of a line.
 *
 * @param {Series} s
 * @param {number} i
 * @param {Chart} chart
 * @returns {import('uplot').Series}
 */
function line(s, i, chart) {
  const stroke = lineColor(i);
  /** @type {import('uplot').Series} */
  const out = { label: s.name, stroke, width: 1.5, points: { show: (u, index) => countKnown(u.data[index]) < 3 }, value: (_, v) => (chart.log && v === LOG_FLOOR ? '≤ ' : '') + withUnit(v, chart.unit) };
  switch (s.style) {
    case 'dashed':
      return { ...out, dash: [6, 4] };
    case 'steps':
      return { ...out, dash: [6, 4], paths: uPlot.paths.stepped?.({ align: 1 }) };
    case 'area':
      return { ...out, fill: () => `rgb(${color('heat')} / 16%)` };
    case 'bars':
      return { ...out, width: 0, fill: () => `rgb(${color('heat')} / 55%)`, paths: uPlot.paths.bars?.({ align: 1, size: [0.94, Infinity] }) };
    default:
      return out;
  }
}

/**
 * Returns the number of known values. A line with fewer than three is drawn with points.
 *
 * @param {ArrayLike<number | null | undefined>} values
 */
function countKnown(values) {
  return Array.from(values).filter((v) => v !== null && v !== undefined).length;
}

/**
 * Joins series with different points into one table. undefined means that a series has no point there, and its line
 * continues; null means a gap in the line.
 *
 * @param {Series[]} series
 * @param {Time} time
 * @param {number} floor
 * @returns {import('uplot').AlignedData}
 */
function table(series, time, floor) {
  const tables = series.map((s) => /** @type {import('uplot').AlignedData} */ ([
    s.at.map((i) => time.from + i * time.step),
    s.values.map((v) => (v === null ? null : Math.max(v, floor))),
  ]));
  return uPlot.join(tables, series.map(() => [0, 2]));
}

/** @type {import('uplot').Range.Function} */
const fromZero = (_, _low, high) => [0, high > 0 ? high * 1.08 : 1];

/** @type {import('uplot').Range.Function} */
const logRange = (_, _low, high) => [LOG_FLOOR, Math.max(10 ** Math.ceil(Math.log10(Math.max(high, 1) * 1.01)), 10)];

/**
 * Shades every other phase of the run, and writes the names of phases that are wide enough.
 *
 * @param {import('uplot')} u
 * @param {Time} time
 */
export function bands(u, time) {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, 0, width, top + height);
  ctx.clip();
  ctx.font = `${10 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  ctx.textAlign = 'left'; // the axis drawn before may have set another value
  ctx.textBaseline = 'bottom'; // names are above the plot, so that no line hides them
  time.bands.forEach((band, i) => {
    const from = u.valToPos(band.from, 'x', true);
    const phaseWidth = u.valToPos(band.to, 'x', true) - from;
    if (i % 2 === 0) {
      ctx.fillStyle = color('band');
      ctx.fillRect(from, top, Math.max(phaseWidth, 2 * ratio), height);
    }
    if (phaseWidth > ctx.measureText(band.name).width + 8 * ratio) {
      ctx.fillStyle = color('soft');
      ctx.fillText(band.name, Math.max(from, left) + 4 * ratio, top - 2 * ratio);
    }
  });
  ctx.restore();
}

/**
 * Draws a line with a name at the start of each action, and a line at the linked time that the reader clicked.
 *
 * @param {import('uplot')} u
 * @param {Time} time
 */
export function lines(u, time) {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `${10 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  ctx.textBaseline = 'top';
  ctx.lineWidth = ratio;
  ctx.setLineDash([]); // the last series may be dashed
  const moment = time.moment === undefined ? [] : [{ name: '', at: time.moment }];
  for (const action of [...(time.lines ?? []), ...moment]) {
    const x = u.valToPos(action.at, 'x', true);
    if (x < left || x > left + width) {
      continue; // outside of the zoomed range
    }
    ctx.strokeStyle = color(action.name === '' ? 'bad' : 'doubt');
    ctx.fillStyle = color('doubt');
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    const fits = x + ctx.measureText(action.name).width + 4 * ratio < left + width;
    ctx.textAlign = fits ? 'left' : 'right';
    ctx.fillText(action.name, x + (fits ? 3 : -3) * ratio, top + 2 * ratio);
  }
  ctx.restore();
}

/**
 * Sets the description of a canvas for screen readers.
 *
 * @param {import('uplot')} plot
 * @param {Chart} chart
 */
export function describe(plot, chart) {
  const ranges = (chart.series ?? []).map((s) => {
    const values = s.values.filter((v) => v !== null);
    return `${s.name} from ${withUnit(Math.min(...values), chart.unit)} to ${withUnit(Math.max(...values), chart.unit)}`;
  });
  const canvas = plot.root.querySelector('canvas');
  canvas?.setAttribute('role', 'img');
  canvas?.setAttribute('aria-label', [chart.title, ...ranges].join('; '));
}
