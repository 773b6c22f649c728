// @ts-check
// Many connections with mutual TLS. Every iteration makes a new TCP connection, a full TLS 1.3 handshake with a
// client certificate, and one request, because only a response proves that the server accepted the certificate. With
// HOLD_SECONDS the connections stay open and make further requests.
//
//   bin/soak run handshake                  starts the target, with a verdict
//   SSL_CERT_FILE=certs/ca.pem bin/k6 run load-tests/http/handshake.js --env BACKEND_URL=https://HOST

import { check, sleep } from 'k6';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import { connect } from 'k6/x/handshake';
import { profile, suite, url } from 'k6/x/soak';

const full = {
  CONNECTIONS: [10_000, 200_000],
  WORKERS: 32,
  MAX_CONCURRENT: 0,
  RATE_LIMIT: 0,
  HOLD_SECONDS: 0,
  ASK_SECONDS: 5,
  TIMEOUT_SECONDS: 10,
  MAX_SECONDS: 3600,
  MAX_FAILED_PERCENT: 1,
  MIN_RATE: 0,
  MAX_MEAN_MS: 0,
};

const { name, values, parameters, runners } = profile('handshake', {
  full,
  smoke: { ...full, CONNECTIONS: [100, 400], WORKERS: 8, MAX_SECONDS: 60 },
});

if (values.RATE_LIMIT > 0 && values.RATE_LIMIT < runners) {
  throw new Error(`RATE_LIMIT must be 0, or at least 1 per runner, because k6 limits each runner to a whole number of connections per second, got ${values.RATE_LIMIT} for ${runners}`);
}
const backend = url('BACKEND_URL');
if (!backend.startsWith('https://')) {
  throw new Error(`BACKEND_URL must begin with https://, got "${backend}"`);
}

const certs = __ENV.CERTS || '../../certs';
const clients = [1, 2, 3, 4].map((n) => pair(`client-${n}`));

/** Clients that the server must refuse, and the certificate that each one presents. */
const untrustedClients = [
  { credentials: 'without a certificate', certificate: null },
  { credentials: 'with a foreign certificate', certificate: pair('stranger') },
  { credentials: 'with a certificate of another authority of the same name', certificate: pair('impostor') },
];

const keepsOpen = values.HOLD_SECONDS > 0;
if (keepsOpen && values.CONNECTIONS.length > 1) {
  throw new Error(`CONNECTIONS must be one number (of concurrent connections) with HOLD_SECONDS, got ${values.CONNECTIONS}`);
}

/** Maximum number of concurrent connections. Connections that stay open are distributed over the workers. */
const maxOpen = values.MAX_CONCURRENT || (keepsOpen ? values.CONNECTIONS[0] : values.WORKERS);
const workers = Math.max(Math.min(values.WORKERS, maxOpen, values.CONNECTIONS[0]), 1);

const total = values.CONNECTIONS.reduce((sum, n) => sum + n, 0);
const stages = values.CONNECTIONS.map((n, i) => ({
  name: `scale-${i + 1}`,
  title: `${n}`,
  kind: keepsOpen ? 'held' : 'load',
  start: 0, // unknown: a scale starts after the end of the previous one
  seconds: values.MAX_SECONDS,
  requests: keepsOpen ? Math.min(n, maxOpen) : n,
  concurrency: keepsOpen ? Math.min(n, maxOpen) : workers,
}));
suite({ name: 'handshake', profile: name, parameters, splitBy: ['scenario', 'code', 'cause'], stages });

export const options = {
  scenarios: {
    handshakes: {
      executor: 'shared-iterations',
      vus: workers,
      iterations: keepsOpen ? workers : total,
      maxDuration: `${values.MAX_SECONDS}s`,
      gracefulStop: `${values.TIMEOUT_SECONDS}s`,
    },
  },
  // The limit of each runner: k6 does not divide it.
  rps: values.RATE_LIMIT > 0 ? Math.floor(values.RATE_LIMIT / runners) : undefined,
  tlsVersion: { min: 'tls1.3', max: 'tls1.3' },
  // Like curl's --connect-to: the address to connect to in place of the host of BACKEND_URL.
  hosts: __ENV.CONNECT_TO ? { [hostOf(backend)]: __ENV.CONNECT_TO } : undefined,
  systemTags: ['scenario', 'check'],
  ext: { soak: { connections: maxOpen } }, // `soak run` checks that the machine has the descriptors, ports and memory
};

/** Duration of a connection from the dial to the response, by scale and outcome, as in the suites of requests. */
const duration = new Trend('request_duration', true);

/** Counts workers that close their open connections. The time of the first one shows whether all connections were open together. */
const released = new Counter('handshake_released');

/**
 * Returns certificate and key of a client.
 *
 * @param {string} client
 */
function pair(client) {
  return { cert: open(`${certs}/clients/${client}.pem`), key: open(`${certs}/clients/${client}-key.pem`) };
}

/**
 * Returns the host of an https URL.
 *
 * @param {string} address
 */
function hostOf(address) {
  return address.replace(/^https:\/\//, '').replace(/[/:].*$/, '');
}

const healthURL = `${backend}/healthz`;
const timeout = values.TIMEOUT_SECONDS * 1000;

/** Maximum attempts of an untrusted client before the load. Several are necessary, because a reset may hide a refusal. */
const UNTRUSTED_TRIES = 5;

/** Attempts of each untrusted client per scale; at least one per UNTRUSTED_EVERY connections. */
const UNTRUSTED_ROUNDS = 10;
const UNTRUSTED_EVERY = 1000;

/** Seconds without load before connections that stay open, because memory is sampled once a second. */
const IDLE_SECONDS = 3;

/** Checks before the load that untrusted clients are refused, and measures the bytes of single connections. */
export function setup() {
  for (const certificate of clients) {
    connect(healthURL, { certificate, timeout, tags: { scenario: 'alone' } });
  }
  tryUntrusted(UNTRUSTED_TRIES);
  if (keepsOpen) {
    sleep(IDLE_SECONDS);
  }
}

/**
 * Connects as each untrusted client until an attempt has a result, and checks that the result is a refusal.
 *
 * @param {number} tries maximum number of attempts
 */
function tryUntrusted(tries) {
  for (const { credentials, certificate } of untrustedClients) {
    for (let n = 0; n < tries; n++) {
      const result = resultOf(connect(healthURL, { certificate, timeout, tags: { scenario: `untrusted ${credentials}` } }));
      if (result !== '') {
        check(result, { [`refused ${credentials}`]: (r) => r === 'refused' });
        break;
      }
    }
  }
}

/** Statuses by which a server refuses a client after the TLS handshake; nginx uses 400. */
const REFUSAL_STATUSES = [400, 401, 403];

/**
 * Returns how the server handled an untrusted client: 'refused' after an alert or a status of REFUSAL_STATUSES,
 * 'accepted' after any other response, and '' if the connection ended without an alert or a response.
 *
 * @param {import('k6/x/handshake').Connection} connection
 */
function resultOf(connection) {
  if (connection.status > 0) {
    return REFUSAL_STATUSES.includes(connection.status) ? 'refused' : 'accepted';
  }
  return connection.cause === 'client_certificate' || connection.cause === 'tls_alert' ? 'refused' : '';
}

export default function () {
  if (keepsOpen) {
    hold();
    return;
  }
  let scale = 0;
  let n = exec.scenario.iterationInTest;
  while (n >= values.CONNECTIONS[scale]) {
    n -= values.CONNECTIONS[scale];
    scale++;
  }
  dial(stages[scale].name, false);
  const every = Math.min(Math.max(Math.floor(values.CONNECTIONS[scale] / UNTRUSTED_ROUNDS), 1), UNTRUSTED_EVERY);
  if ((n + 1) % every === 0) {
    tryUntrusted(1);
  }
}

/**
 * Makes a connection, and records its duration.
 *
 * @param {string} scale
 * @param {boolean} keep whether the connection stays open
 */
function dial(scale, keep) {
  const start = Date.now();
  const connection = connect(healthURL, { hold: keep, timeout, tags: { scenario: scale }, certificate: clients[exec.vu.idInTest % clients.length] });
  const elapsed = connection.ok ? connection.tcpMs + connection.tlsMs + connection.answerMs : Date.now() - start;
  duration.add(elapsed, { scenario: scale, code: connection.cause || 'ok' });
  return connection;
}

/** Opens this worker's share of the connections, and sends requests on each until HOLD_SECONDS have passed. */
function hold() {
  const scale = stages[0].name;
  const connections = [];
  for (let n = exec.scenario.iterationInTest; n < stages[0].concurrency; n += workers) {
    connections.push(dial(scale, true));
  }
  const end = Date.now() + values.HOLD_SECONDS * 1000;
  while (Date.now() < end) {
    sleep(Math.min(values.ASK_SECONDS, Math.max(end - Date.now(), 0) / 1000));
    for (const connection of connections) {
      connection.ask();
    }
    if (exec.scenario.iterationInTest === 0) {
      tryUntrusted(1);
    }
  }
  if (connections.some(({ ok }) => ok)) {
    released.add(1, { scenario: scale });
  }
  for (const connection of connections) {
    check(connection, { 'open to the end': (c) => c.ok });
    connection.close();
  }
}
