// @ts-check
// Churn: connections come and go all the time. Each life of a connection has a device id and books
// of its own, so every noop of each stream is accounted for.
//
//   bin/soak run churn
//
// How long each life lasts is drawn beforehand (exponential, by SEED): the same plan has the same
// lives, and it is known how many there have to be.

import { check } from 'k6';
import exec from 'k6/execution';
import { plan, suite } from 'k6/x/soak';

import { DISCONNECT_LEAD, streamConfig, teardown } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { held, settled, Stream } from '../lib/stream.js';

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

const slots = lifetimes();
const lives = slots.reduce((sum, slot) => sum + slot.holds.length, 0);
const config = streamConfig({ connections: lives, seconds: values.SECONDS, noopInterval: values.NOOP_INTERVAL, lateMs: values.LATE_MS });
plan(config);
suite({
  name: 'churn',
  profile: name,
  parameters: { ...parameters, LIVES: String(lives) },
  splitBy: ['scenario'],
  stages: [{ name: 'churn', title: `${values.CONNECTIONS} at a time`, kind: 'load', start: 0, seconds: values.SECONDS, concurrency: values.CONNECTIONS, requests: lives }],
});

/** So many virtual users share the places. */
const vus = Math.min(values.CONNECTIONS, 8 * config.runners);

export const options = {
  scenarios: {
    churn: { executor: 'per-vu-iterations', vus, iterations: 1, maxDuration: `${values.SECONDS + teardown(config)}s`, gracefulStop: '10s' },
  },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code', 'check'],
};

/**
 * The lives in each place: one follows the other until the run is over.
 *
 * @returns {{first: number, delay: number, holds: number[]}[]} milliseconds; `first` is the number of the first life
 */
function lifetimes() {
  const random = mulberry32(values.SEED);
  const end = (values.SECONDS - DISCONNECT_LEAD) * 1000;
  const mean = values.MEAN_HOLD * 1000;
  const out = [];
  let first = 0;
  for (let place = 0; place < values.CONNECTIONS; place++) {
    const delay = Math.min(random() * mean, end / 2);
    const holds = [];
    for (let at = delay; at < end; ) {
      const hold = Math.min(Math.ceil(-Math.log(1 - random()) * mean), end - at);
      holds.push(hold);
      at += hold;
    }
    out.push({ first, delay, holds });
    first += holds.length;
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
  const places = [];
  for (let place = exec.scenario.iterationInTest; place < slots.length; place += vus) {
    places.push(live(slots[place]));
  }
  await Promise.all(places);
}

/** @param {{first: number, delay: number, holds: number[]}} slot */
async function live({ first, delay, holds }) {
  await held([], delay);
  for (const [i, hold] of holds.entries()) {
    const stream = new Stream(config, `${config.prefix}${first + i}`);
    await settled(stream);
    await held([stream], hold);
    await stream.askToEnd();
    await stream.ended();
    const books = stream.ledger;
    check(null, {
      'Get status was 200': () => stream.opened,
      'Delete status was 200': () => stream.deleteStatus === 200,
      // A life may be shorter than an interval, and then owes nothing.
      'Received all messages': () => books.state === 'completed' && books.missed + books.duplicated + books.reordered + books.corrupted === 0,
    });
  }
}
