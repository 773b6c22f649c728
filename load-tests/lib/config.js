// @ts-check
// The configuration of a soak: environment variables in, one checked object out. A script
// that imports this stops in the init context, with one sentence, before any load is made.

import { authorization, number, url, whole } from './settings.js';

const env = __ENV;

/** How many seconds before the end each connection asks the server to end its stream. */
export const DISCONNECT_LEAD = 5;

/** A stream that is silent for this many intervals is over, whatever TCP says of it. */
const SILENT_INTERVALS = 2.5;

/** So many DELETEs a runner has answered in a second, at least, when it ends its streams. */
const ENDS_PER_SECOND = 50;

/** How long the answer to a DELETE may take, in ms. */
export const DELETE_TIMEOUT = 10000;

/** The same in ms for suites, whose intervals are short: a machine that is busy for a moment cuts nobody off. */
const LEAST_SILENCE = 10000;

/**
 * Reads and checks the configuration. What it leaves unsaid the plan checks again in Go,
 * the same for every way a soak is started.
 */
export function soakConfig() {
  const backendUrl = url('BACKEND_URL');
  const seconds = whole('SECONDS', 3600);
  if (seconds <= DISCONNECT_LEAD) {
    throw new Error(`SECONDS is ${seconds}: it must be over ${DISCONNECT_LEAD}, because streams are ended ${DISCONNECT_LEAD} s before the end.`);
  }
  const noopInterval = number('NOOP_INTERVAL', 15);
  if (noopInterval <= 0) {
    throw new Error(`NOOP_INTERVAL is ${noopInterval}: it must be over 0 seconds.`);
  }
  const connectionsPerVU = whole('CONNECTIONS_PER_VU', 1);
  if (connectionsPerVU < 1) {
    throw new Error(`CONNECTIONS_PER_VU is ${connectionsPerVU}: it must be at least 1.`);
  }
  // 0: as many as the options of the run ask for (k6 run --iterations 600).
  const connections = whole('CONNECTIONS', 0);
  if (connections < 0) {
    throw new Error(`CONNECTIONS is ${connections}: a soak needs at least 1 connection.`);
  }
  return Object.freeze({
    backendUrl,
    connections,
    connectionsPerVU,
    seconds,
    noopInterval,
    idleTimeout: SILENT_INTERVALS * noopInterval * 1000,
    prefix: env.PREFIX || '',
    testid: env.TESTID || '',
    runners: whole('RUNNERS', 1),
    lateMs: whole('LATE_MS', 1000),
    endTimeout: endTimeout(noopInterval),
    reconnect: env.RECONNECT === '1' || env.RECONNECT === 'true',
    headers: authorization(),
  });
}

/** @typedef {ReturnType<typeof soakConfig>} SoakConfig */

/**
 * The configuration of streams that a suite opens and ends in its own way.
 *
 * @param {{connections: number, seconds: number, noopInterval: number, lateMs: number}} suite
 * @returns {SoakConfig}
 */
export function streamConfig({ connections, seconds, noopInterval, lateMs }) {
  return Object.freeze({
    backendUrl: url('BACKEND_URL'),
    connections,
    connectionsPerVU: 1,
    seconds,
    noopInterval,
    idleTimeout: Math.max(SILENT_INTERVALS * noopInterval * 1000, LEAST_SILENCE),
    prefix: env.PREFIX || '',
    testid: env.TESTID || '',
    runners: whole('RUNNERS', 1),
    lateMs,
    endTimeout: endTimeout(noopInterval),
    reconnect: false,
    headers: authorization(),
  });
}

/**
 * How long a stream may take to end after the server has answered the DELETE: by default 15 s or 1.5
 * intervals, so that a service that looks for it at its next tick has time.
 *
 * @param {number} noopInterval in seconds
 * @returns {number} seconds
 */
function endTimeout(noopInterval) {
  const seconds = number('END_TIMEOUT', 0);
  if (seconds < 0) {
    throw new Error(`END_TIMEOUT is ${seconds}: it must be a number of seconds over 0, or 0 for the default.`);
  }
  return seconds || Math.max(15, 1.5 * noopInterval);
}

/**
 * How long a runner may take to end its streams, for the `maxDuration` of a scenario.
 *
 * @param {SoakConfig} config
 * @returns {number} seconds
 */
export function teardown(config) {
  const answers = Math.ceil(config.connections / config.runners / ENDS_PER_SECOND);
  return Math.ceil(45 + config.endTimeout) + answers;
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
 * Stops a script whose parts have to know of each other: runners do not.
 *
 * @param {string} suite
 */
export function oneRunner(suite) {
  const runners = whole('RUNNERS', 1);
  if (runners !== 1) {
    throw new Error(`RUNNERS is ${runners}: ${suite} needs one runner, which knows of all connections.`);
  }
}
