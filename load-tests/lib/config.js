// @ts-check
// The settings of a run. If they are invalid, a script that imports this module throws in the init context.

import { setting, settings } from 'k6/x/soak';

import { DISCONNECT_LEAD, DEFAULT_CONNECTIONS } from './plan.js';

export { DISCONNECT_LEAD, DEFAULT_CONNECTIONS };

/** The default service of a soak. */
export const NOOP = 'noop';

/** @returns {Record<string, string>} the headers for a backend with a token */
export function authorization() {
  const token = __ENV.BACKEND_TOKEN || '';
  return token === '' ? {} : { Authorization: `Bearer ${token}` };
}

/**
 * Maximum number of queued groups of samples (k6's `metricSamplesBufferSize`, default 1000). k6 allocates a buffer of
 * this size twenty times a second, which caused most of the garbage of a process with open streams.
 */
export const SAMPLES_BUFFER = 100;

/** The minimum idle timeout of a suite in ms. With the short intervals of suites, a busy machine would exceed a lower timeout. */
export const MIN_IDLE_TIMEOUT = 10000;

/** Time limit of a DELETE in ms. */
export const DELETE_TIMEOUT = 10000;

/** @typedef {import('k6/x/soak').Service} Service */

/** @typedef {ReturnType<typeof soakConfig>} SoakConfig */

/**
 * Returns the settings of the streams of a suite with its own stages.
 *
 * @param {Service} service
 * @param {{connections: number, seconds: number, lateMs: number}} suite
 */
export function streamConfig(service, suite) {
  const name = setting('SERVICE');
  if (name !== NOOP) {
    throw new Error(`SERVICE must be ${NOOP} for this script, got "${name}"; use load-tests/sse/connectionTest.js for other services`);
  }
  const config = soakConfig(service, { ...suite, connectionsPerVU: 1, reconnect: false, topics: 0, publishRate: 0 });
  return { ...config, idleTimeout: Math.max(config.idleTimeout, MIN_IDLE_TIMEOUT) };
}

/**
 * Returns the checked settings of a run, with values derived from the description of the service. They are the plan
 * of the run.
 *
 * @param {Service} service the service of the setting SERVICE (lib/service.js)
 * @param {Partial<import('k6/x/soak').Plan>} [fixed] settings of the suite, which take precedence
 */
export function soakConfig(service, fixed = {}) {
  return Object.freeze({ ...settings(service, fixed), headers: authorization(), service });
}

/**
 * Throws if the options of `k6 run` do not fit the plan. An iteration that k6 ends before the end of its streams makes
 * no checks, and a run without checks passes k6's thresholds.
 *
 * @param {SoakConfig} config
 * @param {Record<string, any>} scenarios of `exec.test.options`
 */
export function checkOptions(config, scenarios) {
  const required = config.seconds - DISCONNECT_LEAD + config.endTimeout + DELETE_TIMEOUT / 1000;
  for (const [name, scenario] of Object.entries(scenarios)) {
    const users = scenario.vus ?? 1;
    const iterations = scenario.executor === 'per-vu-iterations' ? users * (scenario.iterations ?? 1) : scenario.iterations;
    if (!/^(per-vu|shared)-iterations$/.test(scenario.executor)) {
      throw new Error(`the scenario ${name} must have one iteration per virtual user, such as --vus 600 --iterations 600, got the executor ${scenario.executor}`);
    }
    if (iterations > users) {
      throw new Error(`the scenario ${name} must have one iteration per virtual user, got ${iterations} for ${users}; write --vus ${iterations}`);
    }
    if (config.connections > 0 && iterations * config.connectionsPerVU < config.connections) {
      throw new Error(`CONNECTIONS must be at most ${iterations * config.connectionsPerVU} with the options of k6 (flags, K6_VUS, K6_ITERATIONS or a configuration file), got ${config.connections}; remove CONNECTIONS, or the option`);
    }
    const allowed = secondsOf(scenario.maxDuration ?? '10m') + secondsOf(scenario.gracefulStop ?? '30s');
    if (allowed < required) {
      throw new Error(`the scenario ${name} must last ${required} s, for SECONDS=${config.seconds} and the end of the streams (END_TIMEOUT=${config.endTimeout}), got ${allowed} s; write --duration ${Math.ceil(config.seconds + Math.max(required - config.seconds - 30, 0))}s`);
    }
  }
}

/**
 * @param {string} duration as k6 writes it, such as `1h0m30s` or `500ms`
 * @returns {number}
 */
function secondsOf(duration) {
  /** @type {Record<string, number>} */
  const units = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 };
  let sum = 0;
  for (const [, value, unit] of duration.matchAll(/([0-9.]+)(ms|[smhd])/g)) {
    sum += Number(value) * units[unit];
  }
  return sum;
}

/**
 * Throws if there are several runners, for scripts that need the data of all streams.
 *
 * @param {string} suite
 * @param {number} runners
 */
export function requireOneRunner(suite, runners) {
  if (runners !== 1) {
    throw new Error(`RUNNERS must be 1 for ${suite}, which needs the data of all streams, got ${runners}`);
  }
}
