// @ts-check
// Capacity: adds streams in steps until a stream has a fault or a late noop, ends, or does not open.
//
//   bin/soak run capacity

import { hold, profile, suite } from 'k6/x/soak';

import { requireOneRunner, streamConfig } from '../lib/config.js';
import { noopService } from '../lib/service.js';

const full = {
  STEP: 500,
  STEP_SECONDS: 15,
  CEILING: 8000,
  NOOP_INTERVAL: 1,
  LATE_MS: 1000,
  MIN_CONNECTIONS: 0,
};

const { name, values, parameters, runners } = profile('capacity', {
  full,
  smoke: { ...full, STEP: 50, STEP_SECONDS: 3, CEILING: 150 },
});
if (values.STEP_SECONDS < 2 * values.NOOP_INTERVAL) {
  throw new Error(`STEP_SECONDS must be at least two intervals (${2 * values.NOOP_INTERVAL}), got ${values.STEP_SECONDS}`);
}
requireOneRunner('capacity', runners);

/** Seconds at the end of a step in which all expected noops can arrive. */
const SETTLE = values.NOOP_INTERVAL + Math.min(values.LATE_MS / 1000, values.NOOP_INTERVAL / 2);

/** @type {(import('k6/x/soak').Stage & { concurrency: number })[]} */
const stages = [];
const stepSeconds = values.STEP_SECONDS + SETTLE;
for (let n = values.STEP; n <= values.CEILING; n += values.STEP) {
  stages.push({ name: `held-${n}`, title: `${n}`, kind: 'load', start: stages.length * stepSeconds, seconds: stepSeconds, concurrency: n });
}
if (stages.length === 0) {
  throw new Error(`CEILING must be at least STEP (${values.STEP}), got ${values.CEILING}`);
}

const seconds = Math.ceil(stages.length * stepSeconds + SETTLE);
const service = noopService(values.NOOP_INTERVAL);
const config = streamConfig(service, { connections: stages.length * values.STEP, seconds: seconds + 60, lateMs: values.LATE_MS });
suite({ name: 'capacity', profile: name, parameters, splitBy: ['scenario'], stages });

export const options = {
  // One virtual user, because the result of a step must be known before the next one starts.
  scenarios: { ramp: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${seconds + 60 + config.teardown}s`, gracefulStop: '10s' } },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code'],
  ext: { soak: { seconds: config.seconds } },
};

export default async function () {
  await hold(service, {
    ...config, unchecked: true,
    steps: stages.map((stage) => ({ name: stage.name, streams: stage.concurrency, ramp: values.STEP_SECONDS * 200, for: stepSeconds * 1000 })),
  });
}
