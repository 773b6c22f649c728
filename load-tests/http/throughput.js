// @ts-check
// Throughput: a fixed number of requests shared out among so many at a time, a new one as soon as
// one is answered (a closed model). First more and more requests, then more and more at a time.
//
//   bin/soak run throughput              judges it
//   bin/k6 run load-tests/http/throughput.js --env BACKEND_URL=http://HOST --env PROFILE=smoke

import { askNext } from '../lib/operations.js';
import { profile } from '../lib/profile.js';
import { Schedule, timeFor } from '../lib/schedule.js';
import { url } from '../lib/settings.js';

const full = {
  VOLUMES: [1000, 5000, 10000, 50000],
  VOLUME_CONCURRENCY: 50,
  LEVELS: [5, 10, 20, 50, 100, 200, 500, 1000],
  LEVEL_REQUESTS: 10000,
  WARMUP_REQUESTS: 500,
  SLOWEST: 600,
  MAX_FAILED_PERCENT: 1,
  MAX_P95_MS: 0,
  MIN_ANSWERED_PERCENT: 99,
  TIMEOUT_SECONDS: 10,
};

const chosen = profile({
  full,
  smoke: { ...full, VOLUMES: [100, 300], VOLUME_CONCURRENCY: 10, LEVELS: [5, 10, 20], LEVEL_REQUESTS: 200, WARMUP_REQUESTS: 50, SLOWEST: 300, TIMEOUT_SECONDS: 2 },
});
const { values } = chosen;

const backend = url('BACKEND_URL');

const schedule = new Schedule();
const add = (/** @type {{name: string, title: string, kind: string, requests: number, concurrency: number}} */ stage) =>
  schedule.shared({ ...stage, seconds: timeFor(stage.requests, values.SLOWEST), timeout: values.TIMEOUT_SECONDS });
add({ name: 'warmup', title: 'warm-up', kind: 'warmup', requests: values.WARMUP_REQUESTS, concurrency: values.VOLUME_CONCURRENCY });
for (const requests of values.VOLUMES) {
  add({ name: `volume-${requests}`, title: `${requests} requests`, kind: 'volume', requests, concurrency: values.VOLUME_CONCURRENCY });
}
for (const concurrency of values.LEVELS) {
  add({ name: `level-${concurrency}`, title: `${concurrency} at a time`, kind: 'load', requests: values.LEVEL_REQUESTS, concurrency });
}

export const options = schedule.suite('throughput', chosen);

export default function () {
  askNext(backend, values.TIMEOUT_SECONDS);
}
