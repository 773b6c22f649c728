// @ts-check
// Colours come from the page's style sheet at each drawing, so that a change of theme needs no
// new charts.

/** @param {string} name of a custom property, without its dashes */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** How many colours of lines there are. */
const LINES = 8;

/** @param {number} series from 0 */
export function lineColour(series) {
  return () => colour(`line-${(series % LINES) + 1}`);
}

/** @returns {Partial<import('uplot').Axis>} */
export function axis() {
  return {
    stroke: () => colour('soft'),
    grid: { stroke: () => colour('grid'), width: 1 },
    ticks: { stroke: () => colour('grid'), width: 1, size: 5 },
    font: '11px system-ui, "DejaVu Sans", sans-serif',
  };
}

/**
 * A value as the tables of the page would say it.
 *
 * @param {number | null | undefined} v
 * @param {string} unit
 */
export function withUnit(v, unit) {
  if (v === null || v === undefined) {
    return '–';
  }
  if (unit === 'ms' && v >= 1000) {
    return `${trim(v / 1000)} s`;
  }
  return unit ? `${trim(v)} ${unit}` : trim(v);
}

/** @param {number} v */
function trim(v) {
  return v.toLocaleString('en', { maximumFractionDigits: Math.abs(v) < 10 ? 2 : Math.abs(v) < 100 ? 1 : 0 });
}

/** The narrowest value axis, in pixels. */
const NARROW = 46;

/**
 * Room for the values of an axis.
 *
 * @param {import('uplot')} _plot
 * @param {string[]} values
 */
export function axisSize(_plot, values) {
  const longest = Math.max(0, ...(values ?? []).map((v) => v?.length ?? 0));
  return Math.max(NARROW, 14 + longest * 6.5);
}
