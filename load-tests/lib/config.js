// @ts-check
// The configuration of a soak: environment variables in, one checked object out. A script
// that imports this stops in the init context, with one sentence, before any load is made.

import { authorization, number, url, whole } from './settings.js';

const env = __ENV;

/** How many seconds before the end each connection asks the server to end its stream. */
export const DISCONNECT_LEAD = 5;

/** A stream that is silent for this many intervals is over, whatever TCP says of it. */
const SILENT_INTERVALS = 2.5;

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
    reconnect: false,
    headers: authorization(),
  });
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
