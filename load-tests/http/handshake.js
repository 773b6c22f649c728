// @ts-check
// Many connects with mutual TLS: every iteration is a new TCP connection and a full TLS 1.3
// handshake with a client certificate, then one answer, without which nobody knows whether the
// server took the certificate. With HOLD_SECONDS the connections stay open, and are asked again.
//
//   bin/soak run handshake                  makes the target, judges it, reports
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

const { name, values, parameters, runners } = profile({
  full,
  smoke: { ...full, CONNECTIONS: [100, 400], WORKERS: 8, MAX_SECONDS: 60 },
});

const backend = url('BACKEND_URL');
if (!backend.startsWith('https://')) {
  throw new Error(`BACKEND_URL is "${backend}": a handshake needs https://.`);
}

for (const setting of /** @type {const} */ (['WORKERS', 'MAX_CONCURRENT'])) {
  if (!Number.isInteger(values[setting])) {
    throw new Error(`${setting} is ${values[setting]}: it must be a whole number.`);
  }
}
if (!(values.TIMEOUT_SECONDS > 0)) {
  throw new Error(`TIMEOUT_SECONDS is ${values.TIMEOUT_SECONDS}: it must be over 0.`);
}

const certs = __ENV.CERTS || '../../certs';
const clients = [1, 2, 3, 4].map((n) => pair(`client-${n}`));

/** Clients that the server must refuse, and the certificate that each one presents. */
const strangers = [
  { how: 'without a certificate', certificate: null },
  { how: 'with a foreign certificate', certificate: pair('stranger') },
  { how: 'with a certificate of another authority of the same name', certificate: pair('impostor') },
];

const held = values.HOLD_SECONDS > 0;
if (held && values.CONNECTIONS.length > 1) {
  throw new Error(`CONNECTIONS is ${values.CONNECTIONS}: with HOLD_SECONDS it is one number, of connections held at a time.`);
}

/** Connections at a time; held ones are shared out among the workers. */
const most = values.MAX_CONCURRENT || (held ? values.CONNECTIONS[0] : values.WORKERS);
const workers = Math.max(Math.min(values.WORKERS, most, values.CONNECTIONS[0]), 1);

const total = values.CONNECTIONS.reduce((sum, n) => sum + n, 0);
const stages = values.CONNECTIONS.map((n, i) => ({
  name: `scale-${i + 1}`,
  title: `${n}`,
  kind: held ? 'held' : 'load',
  start: 0, // when the one before is through, whenever that is
  seconds: values.MAX_SECONDS,
  requests: held ? Math.min(n, most) : n,
  concurrency: held ? Math.min(n, most) : workers,
}));
suite({ name: 'handshake', profile: name, parameters, splitBy: ['scenario', 'code', 'cause'], stages });

export const options = {
  scenarios: {
    handshakes: {
      executor: 'shared-iterations',
      vus: workers,
      iterations: held ? workers : total,
      maxDuration: `${values.MAX_SECONDS}s`,
      gracefulStop: `${values.TIMEOUT_SECONDS}s`,
    },
  },
  // Of each runner: k6 does not divide it.
  rps: values.RATE_LIMIT > 0 ? Math.max(Math.floor(values.RATE_LIMIT / runners), 1) : undefined,
  tlsVersion: { min: 'tls1.3', max: 'tls1.3' },
  // As curl's --connect-to: the address that stands for the host of BACKEND_URL.
  hosts: __ENV.CONNECT_TO ? { [hostOf(backend)]: __ENV.CONNECT_TO } : undefined,
  systemTags: ['scenario', 'check'],
  ext: { soak: { connections: most } }, // for `soak run`, which sees by it whether the machines can hold so many
};

/** The whole of a connection, by scale and outcome: what suites of requests measure too. */
const duration = new Trend('request_duration', true);

/** When workers begin to let their held connections go: by the first of them one sees whether all were open at a time. */
const released = new Counter('handshake_released');

/** @param {string} client */
function pair(client) {
  return { cert: open(`${certs}/clients/${client}.pem`), key: open(`${certs}/clients/${client}-key.pem`) };
}

/** @param {string} address */
function hostOf(address) {
  return address.replace(/^https:\/\//, '').replace(/[/:].*$/, '');
}

const path = `${backend}/healthz`;
const timeout = values.TIMEOUT_SECONDS * 1000;

/** Maximum attempts of a stranger before the load: the reset after a refusal may hide the refusal. */
const STRANGERS_TRIES = 5;

/** During the load strangers make this many attempts per scale, and at least one per STRANGERS_EVERY connections. */
const STRANGERS_ROUNDS = 10;
const STRANGERS_EVERY = 1000;

/** Seconds of quiet before connections that are held: what processes take without them is sampled once a second. */
const QUIET = 3;

/** Before the load: checks that strangers are refused, and measures the bytes of single connections. */
export function setup() {
  for (const certificate of clients) {
    connect(path, { certificate, timeout, tags: { scenario: 'alone' } });
  }
  knock(STRANGERS_TRIES);
  if (held) {
    sleep(QUIET);
  }
}

/**
 * Connects as each stranger, until the server shows whether it refuses the stranger, and checks that it does.
 *
 * @param {number} tries at most
 */
function knock(tries) {
  for (const { how, certificate } of strangers) {
    for (let n = 0; n < tries; n++) {
      const tells = told(connect(path, { certificate, timeout, tags: { scenario: `stranger ${how}` } }));
      if (tells !== '') {
        check(tells, { [`refused ${how}`]: (what) => what === 'refused' });
        break;
      }
    }
  }
}

/** Statuses by which a server refuses a client at the door of HTTP, as nginx does: 400. */
const REFUSING = [400, 401, 403];

/**
 * What a server says of a stranger: an answer lets it in, an alert or a refusing status does not, and
 * a connection that only ends tells nothing.
 *
 * @param {import('k6/x/handshake').Connection} connection
 */
function told(connection) {
  if (connection.status > 0) {
    return REFUSING.includes(connection.status) ? 'refused' : 'let in';
  }
  return connection.cause === 'client_certificate' || connection.cause === 'tls_alert' ? 'refused' : '';
}

export default function () {
  if (held) {
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
  const every = Math.min(Math.max(Math.floor(values.CONNECTIONS[scale] / STRANGERS_ROUNDS), 1), STRANGERS_EVERY);
  if ((n + 1) % every === 0) {
    knock(1);
  }
}

/**
 * @param {string} scale
 * @param {boolean} keep
 */
function dial(scale, keep) {
  const began = Date.now();
  const connection = connect(path, { hold: keep, timeout, tags: { scenario: scale }, certificate: clients[exec.vu.idInTest % clients.length] });
  const took = connection.ok ? connection.tcpMs + connection.tlsMs + connection.answerMs : Date.now() - began;
  duration.add(took, { scenario: scale, code: connection.cause || 'ok' });
  return connection;
}

/** Opens this worker's share of the connections, and asks on each again and again. */
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
      knock(1);
    }
  }
  if (connections.some(({ ok }) => ok)) {
    released.add(1, { scenario: scale });
  }
  for (const connection of connections) {
    check(connection, { 'held to the end': (c) => c.ok });
    connection.close();
  }
}
