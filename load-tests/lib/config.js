// @ts-check
// The settings of a run. A script that imports this stops in the init context, with one sentence, before it makes any load.

import { setting, settings } from 'k6/x/soak';

import { DISCONNECT_LEAD, USUAL_CONNECTIONS } from './plan.js';

export { DISCONNECT_LEAD, USUAL_CONNECTIONS };

/** The service of a soak that names none. */
export const NOOP = 'noop';

/** @returns {Record<string, string>} the headers for a backend with a token */
export function authorization() {
  const token = __ENV.BACKEND_TOKEN || '';
  return token === '' ? {} : { Authorization: `Bearer ${token}` };
}

/**
 * Groups of samples that wait for k6's outputs at most (k6's `metricSamplesBufferSize`, usually 1000). k6 makes room for so many
 * twenty times a second, which was most of the garbage of a process that holds streams.
 */
export const SAMPLES_BUFFER = 100;

/** The shortest idle timeout of a suite in ms: its intervals are so short that a busy machine would end some streams. */
export const LEAST_SILENCE = 10000;

/** How long the answer to a DELETE may take, in ms. */
export const DELETE_TIMEOUT = 10000;

/** @typedef {import('k6/x/soak').Service} Service */

/** @typedef {ReturnType<typeof soakConfig>} SoakConfig */

/**
 * The settings of streams that a suite opens and ends in its own way.
 *
 * @param {Service} service
 * @param {{connections: number, seconds: number, lateMs: number}} suite
 */
export function streamConfig(service, suite) {
  const name = setting('SERVICE');
  if (name !== NOOP) {
    throw new Error(`SERVICE is "${name}": this script holds streams of ${NOOP} only. load-tests/sse/connectionTest.js soaks other services.`);
  }
  const config = soakConfig(service, { ...suite, connectionsPerVU: 1, reconnect: false, topics: 0, publishRate: 0 });
  return { ...config, idleTimeout: Math.max(config.idleTimeout, LEAST_SILENCE) };
}

/**
 * The settings of a run, checked, with what follows from them and from the description of the service. They are its plan.
 *
 * @param {Service} service what SERVICE describes (lib/service.js)
 * @param {Partial<import('k6/x/soak').Plan>} [stated] precede the settings of the run
 */
export function soakConfig(service, stated = {}) {
  return Object.freeze({ ...settings(service, stated), headers: authorization(), service });
}

/**
 * Holds the options of a bare `k6 run` against the plan. An iteration that k6 ends before its streams
 * have ended makes no check, and a run without checks passes k6's thresholds.
 *
 * @param {SoakConfig} config
 * @param {Record<string, any>} scenarios of `exec.test.options`
 */
export function heedOptions(config, scenarios) {
  const needed = config.seconds - DISCONNECT_LEAD + config.endTimeout + DELETE_TIMEOUT / 1000;
  for (const [name, scenario] of Object.entries(scenarios)) {
    const users = scenario.vus ?? 1;
    const iterations = scenario.executor === 'per-vu-iterations' ? users * (scenario.iterations ?? 1) : scenario.iterations;
    if (!/^(per-vu|shared)-iterations$/.test(scenario.executor)) {
      throw new Error(`the scenario ${name} is ${scenario.executor}: a soak needs a number of iterations, one for each virtual user, such as --vus 600 --iterations 600.`);
    }
    if (iterations > users) {
      throw new Error(`the scenario ${name} has ${iterations} iterations for ${users} virtual users: each holds its streams for the whole run, so write --vus ${iterations}.`);
    }
    if (config.connections > 0 && iterations * config.connectionsPerVU < config.connections) {
      throw new Error(`CONNECTIONS is ${config.connections}, but the options of k6 (flags, K6_VUS, K6_ITERATIONS or a configuration file) hold only ${iterations * config.connectionsPerVU}: leave CONNECTIONS out, or the option.`);
    }
    const given = secondsOf(scenario.maxDuration ?? '10m') + secondsOf(scenario.gracefulStop ?? '30s');
    if (given < needed) {
      throw new Error(`the scenario ${name} ends after ${given} s, but SECONDS=${config.seconds} and the end of the streams (END_TIMEOUT=${config.endTimeout}) take up to ${needed}: write --duration ${Math.ceil(config.seconds + Math.max(needed - config.seconds - 30, 0))}s.`);
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
 * Stops a script that has to know of all connections, if there are several runners.
 *
 * @param {string} suite
 * @param {number} runners
 */
export function oneRunner(suite, runners) {
  if (runners !== 1) {
    throw new Error(`RUNNERS is ${runners}: ${suite} needs one runner, which knows of all connections.`);
  }
}
