// @ts-check
// Churn: connections come and go all the time. Each connection has a device id and a ledger of its own, so
// every noop of each stream is counted.
//
//   bin/soak run churn
//
// The lifetime of each connection is drawn beforehand (exponential, by SEED): the same plan has the same
// lifetimes, and the number of connections is known before the first one opens.

import exec from 'k6/execution';
import { plan, suite } from 'k6/x/soak';

import { DISCONNECT_LEAD, streamConfig } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { noopService } from '../lib/service.js';
import { checkStream, settled, sleep, Stream, untilOver } from '../lib/stream.js';

const full = {
  CONNECTIONS: 500,
  MEAN_HOLD: 20,
  SECONDS: 600,
  NOOP_INTERVAL: 1,
  LATE_MS: 1000,
  SEED: 1,
};

const { name, values, parameters } = profile({
  full,
  smoke: { ...full, CONNECTIONS: 40, MEAN_HOLD: 2, SECONDS: 14 },
});
if (values.MEAN_HOLD <= 0) {
  throw new Error(`MEAN_HOLD is ${values.MEAN_HOLD}: a connection must be held for some time.`);
}

const slots = drawLifetimes();
const connections = slots.reduce((sum, slot) => sum + slot.lifetimes.length, 0);
const config = streamConfig(noopService(values.NOOP_INTERVAL), { connections, seconds: values.SECONDS, lateMs: values.LATE_MS });
plan(config);
suite({
  name: 'churn',
  profile: name,
  parameters: { ...parameters, LIVES: String(connections) },
  splitBy: ['scenario'],
  stages: [{ name: 'churn', title: `${values.CONNECTIONS} at a time`, kind: 'load', start: 0, seconds: values.SECONDS, concurrency: values.CONNECTIONS, requests: connections }],
});

/** So many virtual users share the slots. */
const vus = Math.min(values.CONNECTIONS, 8 * config.runners);

export const options = {
  scenarios: {
    churn: { executor: 'per-vu-iterations', vus, iterations: 1, maxDuration: `${values.SECONDS + config.teardown}s`, gracefulStop: '10s' },
  },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code', 'check'],
};

/** @typedef {{first: number, delay: number, lifetimes: number[]}} Slot milliseconds; `first` is the number of its first connection */

/**
 * The connections of each slot: one follows the other until the run is over.
 *
 * @returns {Slot[]}
 */
function drawLifetimes() {
  const random = mulberry32(values.SEED);
  const end = (values.SECONDS - DISCONNECT_LEAD) * 1000;
  const mean = values.MEAN_HOLD * 1000;
  const out = [];
  let first = 0;
  for (let slot = 0; slot < values.CONNECTIONS; slot++) {
    const delay = Math.min(random() * mean, end / 2);
    const lifetimes = [];
    for (let at = delay; at < end; ) {
      const lifetime = Math.min(Math.ceil(-Math.log(1 - random()) * mean), end - at);
      lifetimes.push(lifetime);
      at += lifetime;
    }
    out.push({ first, delay, lifetimes });
    first += lifetimes.length;
  }
  return out;
}

/**
 * A small random generator that is the same everywhere (mulberry32, by Tommy Ettinger, public domain).
 *
 * @param {number} seed
 */
function mulberry32(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export default async function () {
  const mine = slots.filter((_, n) => n % vus === exec.scenario.iterationInTest);
  await Promise.all(mine.map(churn));
}

/**
 * Total time in milliseconds that a slot waits for its streams to end before it opens the next ones. It limits the delay of
 * connects if the service ends streams late or never, so every planned stream opens within the run.
 */
const MOST_WAIT = 5000;

/** @param {Slot} slot */
async function churn({ first, delay, lifetimes }) {
  const ends = [];
  let left = MOST_WAIT;
  await sleep(delay);
  for (const [i, lifetime] of lifetimes.entries()) {
    const stream = new Stream(config, `${config.prefix}${first + i}`);
    await settled(stream);
    await untilOver([stream], lifetime);
    const end = close(stream);
    ends.push(end);
    const asked = Date.now();
    await atMost(left, end);
    left = Math.max(left - (Date.now() - asked), 1);
  }
  await Promise.all(ends);
}

/**
 * Waits until the promise is settled, at most for the given time.
 *
 * @param {number} ms
 * @param {Promise<void>} promise
 * @returns {Promise<void>}
 */
function atMost(ms, promise) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(), ms);
    promise.finally(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** @param {Stream} stream */
async function close(stream) {
  await stream.requestClose();
  await stream.ended();
  const { state, missed, duplicated, reordered, corrupted } = stream.ledger;
  // A connection may be shorter than an interval; then no message is expected on it.
  checkStream(stream, state === 'completed' && missed + duplicated + reordered + corrupted === 0);
}
