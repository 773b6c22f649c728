// @ts-check
// One backend against a cluster of CLUSTER_SIZE: the same levels go to both, interleaved, so that whatever else
// happens on the machine meets both alike.
//
//   bin/soak run compare                 starts both and judges
//   bin/k6 run load-tests/http/compare.js --env BACKEND_URL=http://ONE --env CLUSTER_URL=http://THREE

import { operationsOf } from '../lib/operations.js';
import { profile } from '../lib/profile.js';
import { Schedule, timeFor } from '../lib/schedule.js';
import { url } from '../lib/settings.js';

const full = {
  LEVELS: [5, 10, 20, 50, 100, 200],
  LEVEL_REQUESTS: 10000,
  WARMUP_REQUESTS: 500,
  SLOWEST: 600,
  CLUSTER_SIZE: 3,
  MAX_FAILED_PERCENT: 1,
  MAX_P95_MS: 0,
  MIN_ANSWERED_PERCENT: 99,
  TIMEOUT_SECONDS: 10,
};

const chosen = profile({
  full,
  smoke: { ...full, LEVELS: [5, 20], LEVEL_REQUESTS: 300, WARMUP_REQUESTS: 30, SLOWEST: 300, TIMEOUT_SECONDS: 2 },
});
const { values } = chosen;

if (!Number.isInteger(values.CLUSTER_SIZE) || values.CLUSTER_SIZE < 2) {
  throw new Error(`CLUSTER_SIZE is ${values.CLUSTER_SIZE}: a cluster has at least 2 backends.`);
}

/** @type {Record<string, string>} */
const targets = { single: url('BACKEND_URL'), cluster: url('CLUSTER_URL') };

const schedule = new Schedule();
for (const concurrency of [0, ...values.LEVELS]) {
  for (const target of Object.keys(targets)) {
    const warmup = concurrency === 0;
    const requests = warmup ? values.WARMUP_REQUESTS : values.LEVEL_REQUESTS;
    schedule.closed({
      name: warmup ? `warmup-${target}` : `level-${concurrency}-${target}`,
      title: warmup ? 'warm-up' : `${concurrency} at a time, ${target}`,
      kind: warmup ? 'warmup' : 'load',
      target,
      operations: operationsOf(targets[target]),
      concurrency: concurrency || 10,
      requests,
      seconds: timeFor(requests, values.SLOWEST),
      timeout: values.TIMEOUT_SECONDS,
    });
  }
}

export const options = schedule.suite('compare', chosen);

export default () => schedule.run();
