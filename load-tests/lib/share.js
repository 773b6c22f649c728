// @ts-check
// The streams of a suite that has the plan of a soak and acts on a percentage of its streams. The virtual users of
// all runners share the streams.

import exec from 'k6/execution';

import { LEAST_SILENCE, SAMPLES_BUFFER, soakConfig, USUAL_CONNECTIONS } from './config.js';
import { loadService } from './service.js';

/** Streams that open per second, by all runners. */
const RAMP = 500;

/**
 * Returns the service and the configuration of such a suite.
 *
 * @returns {{service: import('k6/x/soak').Service, config: import('./config.js').SoakConfig, ext: object}}
 *   `ext` is for the options: `soak run` reads the description there by `k6 inspect`
 */
export function sharedConfig() {
  const { service, description, ownToken } = loadService();
  const given = soakConfig(service);
  const config = {
    ...given,
    connections: given.connections || USUAL_CONNECTIONS,
    idleTimeout: Math.max(given.idleTimeout, LEAST_SILENCE), // an action may delay messages by seconds; the verdict must report that, not an idle timeout
  };
  return { service, config, ext: { soak: { service: description, ownToken } } };
}

/**
 * Returns the options of such a suite.
 *
 * @param {string} name of the suite, and its scenario
 * @param {ReturnType<typeof sharedConfig>} shared
 * @param {number} [vus]
 */
export function sharedOptions(name, { config, ext }, vus = usersOf(config)) {
  return {
    scenarios: { [name]: { executor: 'per-vu-iterations', vus, iterations: 1, maxDuration: `${config.seconds + config.teardown}s`, gracefulStop: '10s' } },
    batchPerHost: 0,
    metricSamplesBufferSize: SAMPLES_BUFFER,
    systemTags: ['scenario', 'status', 'error_code', 'check'],
    ext,
  };
}

/**
 * @param {string} setting name of the percentage
 * @param {number} percent
 * @param {number} connections
 * @returns {number} n, so that every n-th stream from the first is part of the percentage
 */
export function everyOf(setting, percent, connections) {
  const every = Math.round(100 / percent);
  if (!(percent >= 1 && percent <= 50) || connections < 2 * every) {
    throw new Error(`${setting} must be from 1 to 50 percent, of at least ${2 * every || 4} streams, got ${percent} of ${connections}.`);
  }
  return every;
}

/**
 * @param {{connections: number, noopInterval: number}} config
 * @returns {number} seconds after which all streams are open and had two noops
 */
export function settledAfter({ connections, noopInterval }) {
  return Math.ceil(connections / RAMP + 2 * noopInterval) + 1;
}

/**
 * @param {{connections: number, runners: number}} config
 * @returns {number} virtual users that share the streams
 */
function usersOf({ connections, runners }) {
  return Math.min(connections, 8 * runners);
}

/**
 * @param {{connections: number}} config
 * @returns {number} milliseconds in which the streams open
 */
export function rampOf({ connections }) {
  return (connections / RAMP) * 1000;
}

/**
 * Returns the streams of this virtual user: every vus-th one.
 *
 * @param {{connections: number, runners: number}} config
 * @param {number} every
 * @param {number} vus virtual users that share the streams
 * @returns {{streams: number[], nth: number[], others: number[]}} numbers of all streams of the virtual user; of those among every `every`-th
 *   stream of the run; and of the others
 */
export function shareOf(config, every, vus = usersOf(config)) {
  const streams = [];
  for (let n = exec.scenario.iterationInTest; n < config.connections; n += vus) {
    streams.push(n);
  }
  return { streams, nth: streams.filter((n) => n % every === 0), others: streams.filter((n) => n % every !== 0) };
}
