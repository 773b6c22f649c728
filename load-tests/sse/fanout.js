// @ts-check
// Fan-out: how long a broadcast takes to reach N streams, and whether it reaches all of them.
//
//   bin/soak run fanout

import { hold, profile, suite } from 'k6/x/soak';

import { requireOneRunner, streamConfig } from '../lib/config.js';
import { noopService } from '../lib/service.js';

const full = {
  LEVELS: [100, 500, 1000, 2000, 5000],
  BROADCASTS: 30,
  EVERY_MS: 1000,
  NOOP_INTERVAL: 1,
  LATE_MS: 1000,
  DELIVERY_SECONDS: 10,
};

const { name, values, parameters, runners } = profile('fanout', {
  full,
  smoke: { ...full, LEVELS: [20, 60], BROADCASTS: 5, EVERY_MS: 200 },
});
requireOneRunner('fanout', runners);
const levels = values.LEVELS;
if (levels.some((n, i) => i > 0 && n <= levels[i - 1])) {
  throw new Error(`LEVELS must increase, because each level adds streams to the previous one, got ${levels}`);
}

/** Milliseconds before the first broadcast. In that time each stream receives two noops, which show whether noops have numbers. */
const SETTLE = 2 * values.NOOP_INTERVAL * 1000;

/** Milliseconds in which the streams of a level open. */
const RAMP = 1500;

const stageSeconds = Math.ceil((RAMP + SETTLE + values.BROADCASTS * values.EVERY_MS) / 1000) + 1;
const stages = levels.map((n, i) => ({ name: `to-${n}`, title: `${n}`, kind: 'load', start: i * stageSeconds, seconds: stageSeconds, concurrency: n, requests: values.BROADCASTS }));

/** Seconds of a level, with the time limit of one lost broadcast. */
const levelSeconds = stageSeconds + values.DELIVERY_SECONDS;

/** The last broadcast of the last level may be lost, too. */
const seconds = stages.length * levelSeconds + values.DELIVERY_SECONDS;
const service = noopService(values.NOOP_INTERVAL);
const config = streamConfig(service, { connections: levels[levels.length - 1], seconds: seconds + 10, lateMs: values.LATE_MS });
suite({ name: 'fanout', profile: name, parameters, splitBy: ['scenario', 'code'], stages });

export const options = {
  scenarios: { fanout: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${seconds + config.teardown}s`, gracefulStop: '10s' } },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code', 'check'],
  ext: { soak: { seconds: config.seconds } },
};

export default async function () {
  await hold(service, {
    ...config,
    broadcast: { url: `${config.backendUrl}/event/broadcast?event=announcement`, headers: config.headers, event: 'announcement', within: values.DELIVERY_SECONDS * 1000 },
    steps: stages.map((stage, i) => ({
      name: stage.name, streams: stage.concurrency, ramp: RAMP, for: RAMP + SETTLE, broadcasts: values.BROADCASTS, every: values.EVERY_MS, until: (i + 1) * levelSeconds * 1000,
    })),
  });
}
