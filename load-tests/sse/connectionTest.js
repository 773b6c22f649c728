// @ts-check
// The soak: every connection is opened, held for SECONDS − 5, ended by the server when asked
// to, and every noop on it is accounted for in Go (k6/x/soak), without JavaScript per noop.
//
//   bin/k6 run load-tests/sse/connectionTest.js --vus 600 --iterations 600 --duration 60m \
//     --env BACKEND_URL=http://HOST --env NOOP_INTERVAL=15 --env SECONDS=3600 --env PREFIX=laptop-a-

import { check } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { Ledger, plan } from 'k6/x/soak';
import { EventSource } from 'k6/x/sse';

import { DISCONNECT_LEAD, soakConfig } from '../lib/config.js';
import { limiter } from '../lib/limiter.js';

const config = soakConfig();
plan(config);

/** How long the server may take to end a stream after it said 200 to the DELETE, in ms. */
const END_TIMEOUT = 5000;

/** A stream that is silent for this many intervals is over, whatever TCP says of it. */
const SILENT_INTERVALS = 2.5;

/** At most this many DELETEs of one virtual user are under way at a time. */
const disconnects = limiter(20);

const vus = Math.ceil((config.connections || 1200) / config.connectionsPerVU);

export const options = {
  scenarios: {
    soak: {
      executor: 'per-vu-iterations',
      vus,
      iterations: 1,
      maxDuration: `${config.seconds + 60}s`,
      gracefulStop: '10s',
    },
  },
  // Per runner: a rate of 1 survives the split over runners, a count would not.
  thresholds: { checks: ['rate==1'] },
  batchPerHost: 0,
  summaryTrendStats: ['min', 'med', 'p(95)', 'p(99)', 'max'],
};

export default async function () {
  const first = exec.scenario.iterationInTest * config.connectionsPerVU;
  const end = Math.min(first + config.connectionsPerVU, config.connections || Infinity);
  const held = [];
  for (let n = first; n < end; n++) {
    held.push(hold(`${config.prefix}${n}`));
  }
  await Promise.all(held);
}

/**
 * Holds one connection to its end and checks it.
 *
 * @param {string} id
 */
async function hold(id) {
  const ledger = new Ledger(id);
  const source = new EventSource(`${config.backendUrl}/event/connect?id=${id}`, {
    ledger,
    headers: config.headers,
    idleTimeout: SILENT_INTERVALS * config.noopInterval * 1000,
    reconnect: config.reconnect,
    tags: { name: 'GET /event/connect' },
  });
  let opened = false;
  source.onopen = () => {
    opened = true;
  };
  /** @type {Promise<void>} */
  const ended = new Promise((resolve) => {
    source.onerror = (event) => {
      if (!event.willReconnect) {
        resolve();
      }
    };
  });
  const wanted = sleep((config.seconds - DISCONNECT_LEAD) * 1000);
  await Promise.race([wanted.done, ended]);
  wanted.cancel();

  const deleted = await disconnects(() => {
    source.reconnect = false;
    ledger.askToEnd();
    return http.asyncRequest('DELETE', `${config.backendUrl}/event/forcedisconnect?id=${id}`, null, {
      headers: config.headers,
      tags: { name: 'DELETE /event/forcedisconnect' },
      timeout: '10s',
    });
  });
  const patience = sleep(END_TIMEOUT);
  await Promise.race([patience.done, ended]);
  patience.cancel();
  source.close();

  check(null, {
    'Get status was 200': () => opened,
    'Delete status was 200': () => deleted.status === 200,
    'Received all messages': () => ledger.faultless,
  });
}

/**
 * @param {number} ms
 * @returns {{done: Promise<void>, cancel: () => void}}
 */
function sleep(ms) {
  /** @type {number} */
  let timer;
  /** @type {() => void} */
  let finish;
  /** @type {Promise<void>} */
  const done = new Promise((resolve) => {
    finish = resolve;
    timer = setTimeout(() => resolve(), ms);
  });
  return {
    done,
    cancel: () => {
      clearTimeout(timer);
      finish();
    },
  };
}
