// @ts-check
// Churn: streams open and close all the time. Each stream has its own client id and ledger, so every noop of each
// stream is counted.
//
//   bin/soak run churn
//
// The lifetimes of streams are random numbers (exponential, by SEED) that are computed before the run. The same plan
// thus has the same lifetimes, and the number of streams is known before the first one opens.

import exec from 'k6/execution';
import { hold, profile, suite } from 'k6/x/soak';

import { DISCONNECT_LEAD, streamConfig } from '../lib/config.js';
import { noopService } from '../lib/service.js';

const full = {
  CONNECTIONS: 500,
  MEAN_HOLD: 20,
  SECONDS: 600,
  NOOP_INTERVAL: 1,
  LATE_MS: 1000,
  SEED: 1,
};

const { name, values, parameters } = profile('churn', {
  full,
  smoke: { ...full, CONNECTIONS: 40, MEAN_HOLD: 2, SECONDS: 14 },
});

const slots = drawLifetimes();
const connections = slots.reduce((sum, slot) => sum + slot.lifetimes.length, 0);
const service = noopService(values.NOOP_INTERVAL);
const config = streamConfig(service, { connections, seconds: values.SECONDS, lateMs: values.LATE_MS });
suite({
  name: 'churn',
  profile: name,
  parameters: { ...parameters, LIVES: String(connections) },
  splitBy: ['scenario'],
  stages: [{ name: 'churn', title: `${values.CONNECTIONS} at a time`, kind: 'load', start: 0, seconds: values.SECONDS, concurrency: values.CONNECTIONS, requests: connections }],
});

/** Virtual users that share the slots. */
const vus = Math.min(values.CONNECTIONS, 8 * config.runners);

export const options = {
  scenarios: {
    churn: { executor: 'per-vu-iterations', vus, iterations: 1, maxDuration: `${values.SECONDS + config.teardown}s`, gracefulStop: '10s' },
  },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code', 'check'],
  ext: { soak: { seconds: config.seconds } },
};

/** @typedef {{first: number, delay: number, lifetimes: number[]}} Slot milliseconds; `first` is the number of its first stream */

/**
 * Returns the slots. The streams of a slot open one after the other until the end of the run.
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
 * Returns a small random generator with the same results on every machine (mulberry32, by Tommy Ettinger, public
 * domain).
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
  const share = slots.filter((_, n) => n % vus === exec.scenario.iterationInTest);
  await Promise.all(share.map(({ first, delay, lifetimes }) => hold(service, { ...config, from: first, to: first + lifetimes.length, delay, lifetimes })));
}
