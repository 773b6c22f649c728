// @ts-check
// Capacity: adds connections in steps until a noop is missed or late, or a connect fails.
//
//   bin/soak run capacity

import { Counter, Gauge, Trend } from 'k6/metrics';
import { plan, suite } from 'k6/x/soak';

import { oneRunner, streamConfig } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { endAll, held, Stream } from '../lib/stream.js';

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

/** @type {import('k6/x/soak').Stage[]} */
const stages = [];
for (let n = values.STEP; n <= values.CEILING; n += values.STEP) {
  stages.push({ name: `held-${n}`, title: `${n}`, kind: 'load', start: stages.length * values.STEP_SECONDS, seconds: values.STEP_SECONDS, concurrency: n });
}
if (stages.length === 0) {
  throw new Error(`CEILING is ${values.CEILING}: it must be at least STEP, ${values.STEP}.`);
}

const seconds = stages.length * values.STEP_SECONDS;
const config = streamConfig({ connections: stages.length * values.STEP, seconds: seconds + 60, noopInterval: values.NOOP_INTERVAL, lateMs: values.LATE_MS });
plan(config);
suite({ name: 'capacity', profile: name, parameters, splitBy: ['scenario'], stages });

export const options = {
  // One virtual user: whether a step held is to be known before the next one begins.
  scenarios: { ramp: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${seconds + 120}s`, gracefulStop: '10s' } },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code'],
};

/** Streams held, at the beginning and at the end of a step: the samples' times are those of the step. */
const open = new Gauge('capacity_streams');
/** What went wrong in a step, over all streams. */
const faults = {
  refused: new Counter('capacity_refused'),
  dropped: new Counter('capacity_dropped'),
  missed: new Counter('capacity_missed'),
  late: new Counter('capacity_late'),
};
/** Of the streams that a step added: dial to headers. */
const connecting = new Trend('capacity_connect', true);

/** Milliseconds between two groups of connects: a step's come within its first fifth. */
const PACE = 50;

export default async function () {
  /** @type {Stream[]} */
  const streams = [];
  let before = { refused: 0, dropped: 0, missed: 0, late: 0 };
  for (const [i, stage] of stages.entries()) {
    const tags = { scenario: stage.name };
    const began = Date.now();
    open.add(streams.length, tags);
    const target = (i + 1) * values.STEP;
    const group = Math.ceil((values.STEP * PACE * 5) / (stage.seconds * 1000));
    while (streams.length < target) {
      for (let n = 0; n < group && streams.length < target; n++) {
        streams.push(new Stream(config, `${config.prefix}${streams.length}`));
      }
      await held([], PACE);
    }
    await held([], Math.max(stage.seconds * 1000 - (Date.now() - began), 0));
    open.add(streams.length, tags);
    for (const stream of streams.slice(i * values.STEP)) {
      if (stream.opened) {
        connecting.add(stream.ledger.connectMs, tags);
      }
    }
    const now = sum(streams);
    faults.refused.add(now.refused - before.refused, tags);
    faults.dropped.add(now.dropped - before.dropped, tags);
    faults.missed.add(now.missed - before.missed, tags);
    faults.late.add(now.late - before.late, tags);
    before = now;
    if (now.refused + now.dropped + now.missed + now.late > 0) {
      break;
    }
  }
  await endAll(streams, () => {});
}

/**
 * @param {Stream[]} streams
 * @returns what has gone wrong so far
 */
function sum(streams) {
  const out = { refused: 0, dropped: 0, missed: 0, late: 0 };
  for (const stream of streams) {
    if (!stream.opened) {
      out.refused++; // or not yet answered, which is as bad
    } else if (stream.over) {
      out.dropped++;
    }
    out.missed += stream.ledger.missed;
    out.late += stream.ledger.late;
  }
  return out;
}
