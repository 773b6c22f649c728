// @ts-check
// Types of the data that internal/report/html writes into the page.

/**
 * @typedef {object} Time
 * @property {number} from Unix time of the first point, in seconds
 * @property {number} step seconds between points
 * @property {number} n number of points; the last one is at the end of the run
 * @property {{ name: string, from: number, to: number }[]} bands phases of the run
 * @property {{ name: string, at: number }[]} [lines] starts of actions
 * @property {number} [moment] the linked time that the reader clicked, in Unix seconds
 *
 * @typedef {object} Series
 * @property {string} name
 * @property {'area' | 'dashed' | 'steps' | 'bars'} [style] undefined: a line
 * @property {number[]} at indices of points; in a chart of quantiles, 1 / (1 − q)
 * @property {(number | null)[]} values null: a gap in the line
 *
 * @typedef {object} Heat
 * @property {string} items plural noun of the counted items
 * @property {string[]} rows names of the rows, from bottom to top
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
 * @property {string} [live] id of the latest event that the page includes; undefined: the run has ended
 *
 * @typedef {object} Part a part of the page of a run in progress
 * @property {string} html replaces the element with the id of the part
 * @property {Time} [time]
 * @property {Record<string, Chart>} [charts] the charts of the part, by id
 */

export {};
