// @ts-check
// The same soak by sse.open alone: one virtual user per connection, counted in JavaScript. It
// runs on our k6 and on any k6 built with the upstream xk6-sse, because open() blocks there:
// the DELETEs are a scenario of their own. What it cannot say is which noop was lost, and when.

import { check } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import sse from 'k6/x/sse';

import { DISCONNECT_LEAD, noopConfig, USUAL_CONNECTIONS } from '../lib/config.js';

const config = noopConfig();
const connections = config.connections || USUAL_CONNECTIONS;
/** A stream that has not ended by then, in s, was not ended by its DELETE. */
const deadline = config.seconds - DISCONNECT_LEAD + Math.ceil(connections / 20) + config.endTimeout;
const once = { vus: connections, iterations: 1, maxDuration: `${Math.ceil(deadline) + 30}s` };

export const options = {
  scenarios: {
    hold: { executor: 'per-vu-iterations', exec: 'hold', ...once },
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

const device = () => `${config.prefix}${exec.scenario.iterationInTest}`;

export function hold() {
  let opened = 0;
  let noops = 0;
  let others = 0;
  // An iteration that k6 has to interrupt makes no check.
  const params = { timeout: `${Math.ceil(deadline) + 10}s`, headers: config.headers, tags: { name: 'GET /event/connect' } };
  const response = sse.open(`${config.backendUrl}/event/connect?id=${device()}`, params, (client) => {
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
  const held = opened === 0 ? 0 : (Date.now() - opened) / 1000;
  const slack = Math.min(config.lateMs / 1000, config.noopInterval / 2);
  const least = Math.floor((held - slack) / config.noopInterval);
  const most = Math.floor(held / config.noopInterval) + 1;
  check(response, {
    'Get status was 200': (r) => r !== null && r.status === 200,
    'Received all messages': () => noops >= Math.max(least, 1) && noops <= most && others === 0 && held < deadline,
  });
}

export function disconnect() {
  const response = http.del(`${config.backendUrl}/event/forcedisconnect?id=${device()}`, null, {
    headers: config.headers,
    redirects: 0,
    tags: { name: 'DELETE /event/forcedisconnect' },
  });
  check(response, { 'Delete status was 200': (r) => r.status === 200 });
}
