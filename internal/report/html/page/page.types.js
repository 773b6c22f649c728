// @ts-check
// What internal/report/html/chart.go writes for the charts.

/**
 * @typedef {object} Time
 * @property {number} from seconds since 1970 of the first point
 * @property {number} step seconds between points
 * @property {number} n points, the last one at the end of the run
 * @property {{ name: string, from: number, to: number }[]} bands phases of the run
 * @property {{ name: string, at: number }[]} [lines] when each action began
 * @property {number} [moment] that the reader asked for
 *
 * @typedef {object} Series
 * @property {string} name
 * @property {'area' | 'dashed' | 'steps' | 'bars'} [style] a line without
 * @property {number[]} at indices of points; in a chart of quantiles 1 / (1 − q)
 * @property {(number | null)[]} values null breaks the line
 *
 * @typedef {object} Heat
 * @property {string} what what is counted
 * @property {string[]} rows names, from below
 * @property {number} width of a column, in points
 * @property {number[][]} counts by column, then row
 *
 * @typedef {object} Chart
 * @property {string} id
 * @property {'timeline' | 'quantiles' | 'heatmap'} kind
 * @property {string} title
 * @property {string} unit
 * @property {boolean} [log]
 * @property {Series[]} [series]
 * @property {Heat} [heat]
 *
 * @typedef {object} Data
 * @property {Time} time
 * @property {Record<string, Chart>} charts
 * @property {Record<string, string>} files gzip in base64, by name
 * @property {string} [live] the run goes on: the id of the event that the page stands for
 *
 * @typedef {object} Part of a page that goes on
 * @property {string} html of the element that it replaces
 * @property {Time} [time]
 * @property {Record<string, Chart>} [charts] in it
 */

export {};
