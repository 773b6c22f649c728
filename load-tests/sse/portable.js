// @ts-check
// The soak with only sse.open: one virtual user per stream, counted in JavaScript. It runs on bin/k6 and on any
// k6 with xk6-sse. open() blocks the virtual user, so the DELETEs are a separate scenario. The script cannot determine
// which noop was lost and when.
//
//   go run go.k6.io/xk6@v1.2.4 build v1.3.0 --with github.com/phymbert/xk6-sse@v0.1.12 --output bin/k6-upstream

import { check } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import sse from 'k6/x/sse';

// Stock k6 has no module for settings, so this script reads the variables itself.
const { BACKEND_URL, BACKEND_TOKEN, PREFIX } = __ENV;
const number = (/** @type {string} */ name, /** @type {number} */ fallback) => Number(__ENV[name] || fallback);
const DISCONNECT_LEAD = 5;
const config = {
  backendUrl: (BACKEND_URL || '').replace(/\/+$/, ''),
  seconds: number('SECONDS', 3600),
  noopInterval: number('NOOP_INTERVAL', 15),
  lateMs: number('LATE_MS', 1000),
  endTimeout: number('END_TIMEOUT', 0) || Math.max(15, 1.5 * number('NOOP_INTERVAL', 15)),
  prefix: PREFIX || '',
  /** @type {Record<string, string>} */
  headers: BACKEND_TOKEN ? { Authorization: `Bearer ${BACKEND_TOKEN}` } : {},
};
if (!/^https?:\/\/[^/]/.test(config.backendUrl)) {
  throw new Error('BACKEND_URL must name the service to test, such as --env BACKEND_URL=http://127.0.0.1:8080');
}
if (!(config.seconds > DISCONNECT_LEAD && config.noopInterval > 0)) {
  throw new Error(`SECONDS must be over ${DISCONNECT_LEAD} and NOOP_INTERVAL positive, got ${config.seconds} and ${config.noopInterval}`);
}
const connections = number('CONNECTIONS', 1200);
/** Seconds until the DELETE of each stream must have ended it. */
const deadline = config.seconds - DISCONNECT_LEAD + Math.ceil(connections / 20) + config.endTimeout;
const perStream = { vus: connections, iterations: 1, maxDuration: `${Math.ceil(deadline) + 30}s` };

export const options = {
  scenarios: {
    hold: { executor: 'per-vu-iterations', exec: 'hold', ...perStream },
    disconnect: {
      executor: 'shared-iterations',
      exec: 'disconnect',
      vus: Math.min(connections, 20),
      iterations: connections,
      startTime: `${config.seconds - DISCONNECT_LEAD}s`,
      maxDuration: '60s',
    },
  },
  thresholds: { checks: ['rate==1'] },
};

const clientID = () => `${config.prefix}${exec.scenario.iterationInTest}`;

export function hold() {
  let opened = 0;
  let noops = 0;
  let others = 0;
  // An iteration that k6 interrupts makes no checks.
  const params = { timeout: `${Math.ceil(deadline) + 10}s`, headers: config.headers, tags: { name: 'GET /event/connect' } };
  const response = sse.open(`${config.backendUrl}/event/connect?id=${clientID()}`, params, (client) => {
    client.on('open', () => {
      opened = Date.now();
    });
    client.on('event', (event) => {
      if (event.data === '0') {
        noops++;
      } else {
        others++;
      }
    });
  });
  const openFor = opened === 0 ? 0 : (Date.now() - opened) / 1000;
  const slack = Math.min(config.lateMs / 1000, config.noopInterval / 2);
  const minimum = Math.floor((openFor - slack) / config.noopInterval);
  const maximum = Math.floor(openFor / config.noopInterval) + 1;
  check(response, {
    'Get status was 200': (r) => r !== null && r.status === 200,
    'Received all messages': () => noops >= Math.max(minimum, 1) && noops <= maximum && others === 0 && openFor < deadline,
  });
}

export function disconnect() {
  const response = http.del(`${config.backendUrl}/event/forcedisconnect?id=${clientID()}`, null, {
    headers: config.headers,
    redirects: 0,
    tags: { name: 'DELETE /event/forcedisconnect' },
  });
  check(response, { 'Delete status was 200': (r) => r.status === 200 });
}
