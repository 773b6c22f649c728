// @ts-check
// Capacity: adds connections in steps until a noop is missed or late, or a connect fails. What came of
// each step is told by the ledgers of its streams; the script only finds out when to stop.
//
//   bin/soak run capacity

import { Gauge, Trend } from 'k6/metrics';
import { plan, suite } from 'k6/x/soak';

import { oneRunner, streamConfig } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { noopService } from '../lib/service.js';
import { closeAll, openInGroups, sleep, Stream } from '../lib/stream.js';

const full = {
  STEP: 500,
  STEP_SECONDS: 15,
  CEILING: 8000,
  NOOP_INTERVAL: 1,
  LATE_MS: 1000,
  MIN_CONNECTIONS: 0,
};

const { name, values, parameters } = profile({
  full,
  smoke: { ...full, STEP: 50, STEP_SECONDS: 3, CEILING: 150 },
});
if (values.STEP < 1 || values.STEP_SECONDS < 2 * values.NOOP_INTERVAL) {
  throw new Error(`STEP is ${values.STEP} and STEP_SECONDS ${values.STEP_SECONDS}: a step adds at least 1 connection, and lasts for two noops.`);
}
oneRunner('capacity');

/** A step lasts for so many seconds longer, until all that it owes can have come. */
const SETTLE = values.NOOP_INTERVAL + Math.min(values.LATE_MS / 1000, values.NOOP_INTERVAL / 2);

/** @type {import('k6/x/soak').Stage[]} */
const stages = [];
const stepSeconds = values.STEP_SECONDS + SETTLE;
for (let n = values.STEP; n <= values.CEILING; n += values.STEP) {
  stages.push({ name: `held-${n}`, title: `${n}`, kind: 'load', start: stages.length * stepSeconds, seconds: stepSeconds, concurrency: n });
}
if (stages.length === 0) {
  throw new Error(`CEILING is ${values.CEILING}: it must be at least STEP, ${values.STEP}.`);
}

const seconds = Math.ceil(stages.length * stepSeconds + SETTLE);
const config = streamConfig(noopService(values.NOOP_INTERVAL), { connections: stages.length * values.STEP, seconds: seconds + 60, lateMs: values.LATE_MS });
plan(config);
suite({ name: 'capacity', profile: name, parameters, splitBy: ['scenario'], stages });

export const options = {
  // One virtual user: whether a step held is to be known before the next one begins.
  scenarios: { ramp: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${seconds + 60 + config.teardown}s`, gracefulStop: '10s' } },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code'],
};

/** Streams that are open, at the beginning and at the end of a step: the samples' times are those of the step. */
const open = new Gauge('capacity_streams');
/** Of the streams that a step added: dial to headers. */
const connecting = new Trend('capacity_connect', true);

/** Milliseconds between two groups of connects: a step's come within its first fifth. */
const PACE = 50;

export default async function () {
  /** @type {Stream[]} */
  const streams = [];
  for (const [i, stage] of stages.entries()) {
    const tags = { scenario: stage.name };
    const began = Date.now();
    open.add(streams.length, tags);
    const target = (i + 1) * values.STEP;
    const group = Math.ceil((values.STEP * PACE * 5) / (values.STEP_SECONDS * 1000));
    await openInGroups(streams, { target, group, pause: PACE }, (n) => new Stream(config, `${config.prefix}${n}`));
    await sleep(Math.max(stage.seconds * 1000 - (Date.now() - began), 0));
    const suffered = await suffers(streams);
    open.add(streams.length, tags);
    for (const stream of streams.slice(i * values.STEP)) {
      if (stream.opened) {
        connecting.add(stream.ledger.connectMs, tags);
      }
    }
    if (suffered) {
      break;
    }
  }
  await closeAll(streams, () => {});
}

/**
 * Tells whether anything has gone wrong so far. Silence has to last: a stream may be late at this very
 * moment, and not be silent for good.
 *
 * @param {Stream[]} streams
 * @returns {Promise<boolean>}
 */
async function suffers(streams) {
  if (streams.some(faulty)) {
    return true;
  }
  if (!streams.some(silent)) {
    return false;
  }
  await sleep(SETTLE * 1000);
  return streams.some((stream) => faulty(stream) || silent(stream));
}

/** @param {Stream} stream */
function faulty({ opened, over, ledger }) {
  // Not yet answered is as bad as refused.
  return !opened || over || ledger.missed + ledger.late + ledger.duplicated + ledger.reordered + ledger.corrupted > 0;
}

/** @param {Stream} stream */
function silent({ ledger }) {
  return ledger.silentMs > 1.5 * values.NOOP_INTERVAL * 1000 + values.LATE_MS;
}
