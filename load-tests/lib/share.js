// @ts-check
// The streams of a suite that has the plan of a soak and acts on a percentage of its streams. The virtual users of
// all runners share the streams.

import exec from 'k6/execution';

import { MIN_IDLE_TIMEOUT, SAMPLES_BUFFER, soakConfig, DEFAULT_CONNECTIONS } from './config.js';
import { loadService } from './service.js';

/** Streams that open per second, on all runners together. */
const RAMP = 500;

/**
 * Returns the service and the configuration of such a suite.
 *
 * @returns {{service: import('k6/x/soak').Service, config: import('./config.js').SoakConfig, ext: object}}
 *   `ext` is for the options: `soak run` reads the description there with `k6 inspect`
 */
export function sharedConfig() {
  const { service, description, customToken } = loadService();
  const settings = soakConfig(service);
  const config = {
    ...settings,
    connections: settings.connections || DEFAULT_CONNECTIONS,
    idleTimeout: Math.max(settings.idleTimeout, MIN_IDLE_TIMEOUT), // an action may delay messages by seconds; the verdict must report that, not an idle timeout
  };
  return { service, config, ext: { soak: { service: description, customToken } } };
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
 * Returns n such that every n-th stream, starting with the first, makes up `percent` of all streams.
 *
 * @param {string} setting name of the percentage
 * @param {number} percent
 * @param {number} connections
 */
export function everyOf(setting, percent, connections) {
  const every = Math.round(100 / percent);
  if (connections < 2 * every) {
    throw new Error(`CONNECTIONS must be at least ${2 * every} with ${setting}=${percent}, got ${connections}`);
  }
  return every;
}

/**
 * Returns the seconds after which all streams are open and have received two noops.
 *
 * @param {{connections: number, noopInterval: number}} config
 */
export function settleTime({ connections, noopInterval }) {
  return Math.ceil(connections / RAMP + 2 * noopInterval) + 1;
}

/**
 * Returns the number of virtual users that share the streams.
 *
 * @param {{connections: number, runners: number}} config
 */
function usersOf({ connections, runners }) {
  return Math.min(connections, 8 * runners);
}

/**
 * Returns the milliseconds in which the streams open.
 *
 * @param {{connections: number}} config
 */
export function rampOf({ connections }) {
  return (connections / RAMP) * 1000;
}

/**
 * Returns the streams of this virtual user by their numbers: all of them, the selected ones and the others. Of all
 * streams of the run, every `every`-th is selected.
 *
 * @param {{connections: number, runners: number}} config
 * @param {number} every
 * @param {number} vus virtual users that share the streams
 * @returns {{streams: number[], selected: number[], others: number[]}}
 */
export function shareOf(config, every, vus = usersOf(config)) {
  const streams = [];
  for (let n = exec.scenario.iterationInTest; n < config.connections; n += vus) {
    streams.push(n);
  }
  return { streams, selected: streams.filter((n) => n % every === 0), others: streams.filter((n) => n % every !== 0) };
}
