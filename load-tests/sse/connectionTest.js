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

const config = soakConfig();
plan(config);

/** How long each stream is held before its end is asked for, in ms. */
const HOLD = (config.seconds - DISCONNECT_LEAD) * 1000;

/** How long a stream may take to end after the server said 200 to the DELETE, in ms. */
const END_TIMEOUT = 15000;

/** A stream that is silent for this many intervals is over, whatever TCP says of it. */
const SILENT_INTERVALS = 2.5;

/** So many DELETEs of one virtual user are under way at a time: thousands would dial at once. */
const DISCONNECTS = 20;

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
  const connections = [];
  for (let n = first; n < end; n++) {
    connections.push(new Connection(`${config.prefix}${n}`));
  }
  await held(connections);
  /** @type {Promise<void>[]} */
  const checked = [];
  const queue = connections.slice();
  const workers = [];
  for (let n = 0; n < DISCONNECTS; n++) {
    workers.push(disconnect(queue, checked));
  }
  await Promise.all(workers);
  await Promise.all(checked);
}

/**
 * One stream and its books. There may be thousands in a virtual user: it is its own listener,
 * without a closure or a promise while it is held.
 */
class Connection {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.opened = false;
    this.over = false;
    /** @type {() => void} called when the stream is over, and will not come back */
    this.onover = ignore;
    this.ledger = new Ledger(id);
    this.source = new EventSource(`${config.backendUrl}/event/connect?id=${id}`, {
      ledger: this.ledger,
      headers: config.headers,
      idleTimeout: SILENT_INTERVALS * config.noopInterval * 1000,
      reconnect: config.reconnect,
      tags,
    });
    this.source.addEventListener('open', this);
    this.source.addEventListener('error', this);
  }

  /** @param {import('k6/x/sse').SSEEvent | import('k6/x/sse').ErrorEvent} event */
  handleEvent(event) {
    if (event.type === 'open') {
      this.opened = true;
    } else if ('willReconnect' in event && !event.willReconnect) {
      this.over = true;
      this.onover();
    }
  }
}

const tags = { name: 'GET /event/connect' };

function ignore() {}

/**
 * Waits until it is time to end the streams, or until none is left.
 *
 * @param {Connection[]} connections
 * @returns {Promise<void>}
 */
function held(connections) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(), HOLD);
    let left = connections.length;
    const over = () => {
      left--;
      if (left === 0) {
        clearTimeout(timer);
        resolve();
      }
    };
    for (const connection of connections) {
      connection.onover = over;
    }
  });
}

/**
 * Asks the server to end the streams in the queue, one after the other.
 *
 * @param {Connection[]} queue
 * @param {Promise<void>[]} checked takes what is still to be waited for
 */
async function disconnect(queue, checked) {
  for (let connection = queue.shift(); connection; connection = queue.shift()) {
    connection.onover = ignore;
    connection.source.reconnect = false;
    connection.ledger.askToEnd();
    const deleted = await http.asyncRequest('DELETE', `${config.backendUrl}/event/forcedisconnect?id=${connection.id}`, null, {
      headers: config.headers,
      tags: { name: 'DELETE /event/forcedisconnect' },
      timeout: '10s',
    });
    checked.push(finish(connection, deleted.status));
  }
}

/**
 * Waits for the stream to end, and checks the connection.
 *
 * @param {Connection} connection
 * @param {number} deleteStatus
 */
async function finish(connection, deleteStatus) {
  if (!connection.over) {
    await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), END_TIMEOUT);
      connection.onover = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }
  connection.source.close();
  check(null, {
    'Get status was 200': () => connection.opened,
    'Delete status was 200': () => deleteStatus === 200,
    'Received all messages': () => connection.ledger.faultless,
  });
}
