// @ts-check
// Measures the cost of the extension alone: one virtual user opens all streams, each with a ledger, and keeps no
// JavaScript objects per stream. load-tests/sse/connectionTest.js is the script of the soak.

import { EventSource, Ledger } from 'k6/x/soak';

import { soakConfig } from '../../load-tests/lib/config.js';
import { loadService } from '../../load-tests/lib/service.js';

const config = soakConfig(loadService().service);

export const options = {
  scenarios: {
    hold: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${config.seconds + 60}s`, gracefulStop: '1s' },
  },
};

export default function () {
  const settings = {
    idleTimeout: config.idleTimeout,
    reconnect: false,
    headers: config.headers,
    tags: { name: 'GET /event/connect' },
  };
  for (let n = 0; n < config.connections; n++) {
    const id = `${config.prefix}${n}`;
    new EventSource(`${config.backendUrl}/event/connect?id=${id}`, { ...settings, ledger: new Ledger(id) });
  }
}
