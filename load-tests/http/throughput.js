// @ts-check
// Throughput: a constant number of concurrent requests (a closed model). The first stages have an increasing number of
// requests. The stages after them have equal lengths and an increasing concurrency.
//
//   bin/soak run throughput              with a verdict
//   bin/k6 run load-tests/http/throughput.js --env BACKEND_URL=http://HOST --env PROFILE=smoke

import { profile, url } from 'k6/x/soak';

import { operationsOf } from '../lib/operations.js';
import { Schedule, timeFor } from '../lib/schedule.js';

const full = {
  VOLUMES: [1000, 5000, 10000, 50000],
  VOLUME_CONCURRENCY: 50,
  LEVELS: [5, 10, 20, 50, 100, 200, 500, 1000],
  LEVEL_SECONDS: 10,
  WARMUP_SECONDS: 3,
  SLOWEST: 600,
  MAX_FAILED_PERCENT: 1,
  MAX_P95_MS: 0,
  MIN_ANSWERED_PERCENT: 99,
  TIMEOUT_SECONDS: 10,
};

const chosen = profile('throughput', {
  full,
  smoke: { ...full, VOLUMES: [100, 300], VOLUME_CONCURRENCY: 10, LEVELS: [5, 10, 20], LEVEL_SECONDS: 2, WARMUP_SECONDS: 1, SLOWEST: 300, TIMEOUT_SECONDS: 2 },
});
const { values } = chosen;

const schedule = new Schedule(chosen.runners);
const all = { operations: operationsOf(url('BACKEND_URL')), timeout: values.TIMEOUT_SECONDS };
schedule.closed({ ...all, name: 'warmup', title: 'warm-up', kind: 'warmup', seconds: values.WARMUP_SECONDS, concurrency: values.VOLUME_CONCURRENCY });
for (const requests of values.VOLUMES) {
  schedule.closed({
    ...all, name: `volume-${requests}`, title: `${requests} requests`, kind: 'volume', requests, concurrency: values.VOLUME_CONCURRENCY,
    seconds: timeFor(requests, values.SLOWEST),
  });
}
for (const concurrency of values.LEVELS) {
  schedule.closed({ ...all, name: `level-${concurrency}`, concurrency, seconds: values.LEVEL_SECONDS });
}

export const options = schedule.suite('throughput', chosen);

export default () => schedule.run();
