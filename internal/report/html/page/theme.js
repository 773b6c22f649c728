// @ts-check
// Colors and axes of the charts. Each redraw reads the colors from the style sheet of the page, so existing charts follow
// a change of the theme.

/**
 * Returns the value of a color.
 *
 * @param {string} name name of a custom property, without the leading dashes
 */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Number of line colors. */
const LINES = 8;

/**
 * Returns a function that returns the color of a line.
 *
 * @param {number} series number of the line, from 0
 */
export function lineColor(series) {
  return () => color(`line-${(series % LINES) + 1}`);
}

/**
 * Returns the options that all axes share.
 *
 * @returns {Partial<import('uplot').Axis>}
 */
export function axis() {
  return {
    stroke: () => color('soft'),
    grid: { stroke: () => color('grid'), width: 1 },
    ticks: { stroke: () => color('grid'), width: 1, size: 5 },
    font: '11px system-ui, "DejaVu Sans", sans-serif',
  };
}

/**
 * Formats a value as the tables of the page do.
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

/**
 * Formats a number with at most three significant digits or all digits of its integer part.
 *
 * @param {number} v
 */
function trim(v) {
  return v.toLocaleString('en', Math.abs(v) < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });
}

/** Minimum width of a value axis in pixels. */
const MIN_WIDTH = 46;

/**
 * Returns the width that the values of an axis need, in pixels.
 *
 * @param {import('uplot')} _plot
 * @param {string[]} values
 */
export function axisSize(_plot, values) {
  const longest = Math.max(0, ...(values ?? []).map((v) => v?.length ?? 0));
  return Math.max(MIN_WIDTH, 14 + longest * 6.5);
}
