// @ts-check
// The configuration of a soak: environment variables in, one checked object out. A script
// that imports this stops in the init context, with one sentence, before any load is made.

const env = __ENV;

/**
 * @param {string} name
 * @param {number} fallback
 * @returns {number} the variable as a number
 */
function number(name, fallback) {
  const text = env[name];
  if (text === undefined || text === '') {
    return fallback;
  }
  const value = Number(text);
  if (!Number.isFinite(value)) {
    throw new Error(`${name} is "${text}": it must be a number.`);
  }
  return value;
}

/**
 * @param {string} name
 * @param {number} fallback
 * @returns {number} the variable as a whole number
 */
function whole(name, fallback) {
  const value = number(name, fallback);
  if (!Number.isInteger(value)) {
    throw new Error(`${name} is "${env[name]}": it must be a whole number.`);
  }
  return value;
}

/** How many seconds before the end each connection asks the server to end its stream. */
export const DISCONNECT_LEAD = 5;

/**
 * Reads and checks the configuration. What it leaves unsaid the plan checks again in Go,
 * the same for every way a soak is started.
 */
export function soakConfig() {
  const backendUrl = (env.BACKEND_URL || '').replace(/\/+$/, '');
  if (backendUrl === '') {
    throw new Error('BACKEND_URL is missing: say which service to soak, for example --env BACKEND_URL=http://127.0.0.1:8080');
  }
  if (!/^https?:\/\/[^/?#\s]+/.test(backendUrl)) {
    throw new Error(`BACKEND_URL is "${backendUrl}": it must begin with http:// or https:// and name a host.`);
  }
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
  const token = env.BACKEND_TOKEN || '';
  return Object.freeze({
    backendUrl,
    connections,
    connectionsPerVU,
    seconds,
    noopInterval,
    prefix: env.PREFIX || '',
    testid: env.TESTID || '',
    runners: whole('RUNNERS', 1),
    lateMs: whole('LATE_MS', 1000),
    reconnect: env.RECONNECT === '1' || env.RECONNECT === 'true',
    /** @type {Record<string, string>} */
    headers: token === '' ? {} : { Authorization: `Bearer ${token}` },
  });
}

/** @typedef {ReturnType<typeof soakConfig>} SoakConfig */
