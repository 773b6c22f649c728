// @ts-check
// Compares one backend with a cluster of CLUSTER_SIZE backends. In each round, each level runs against one target and
// then against the other, so that other load on the machine affects both. The order alternates between rounds.
//
//   bin/soak run cluster                 starts both, with a verdict
//   bin/k6 run load-tests/http/cluster.js --env BACKEND_URL=http://ONE --env CLUSTER_URL=http://THREE

import { profile, url } from 'k6/x/soak';

import { operationsOf } from '../lib/operations.js';
import { Schedule } from '../lib/schedule.js';

const full = {
  LEVELS: [5, 10, 20, 50, 100, 200],
  ROUNDS: 5,
  ROUND_SECONDS: 3, // at least 2: in less time the bottleneck cannot be determined
  WARMUP_SECONDS: 2,
  CLUSTER_SIZE: 3,
  MAX_FAILED_PERCENT: 1,
  MAX_P95_MS: 0,
  MIN_ANSWERED_PERCENT: 99,
  TIMEOUT_SECONDS: 10,
};

const chosen = profile('cluster', {
  full,
  smoke: { ...full, LEVELS: [20], ROUNDS: 3, ROUND_SECONDS: 1, WARMUP_SECONDS: 1, TIMEOUT_SECONDS: 2 },
});
const { values } = chosen;

/** @type {Record<string, string>} */
const targets = { single: url('BACKEND_URL'), cluster: url('CLUSTER_URL') };

const schedule = new Schedule(chosen.runners);

/** @param {{name: string, title: string, kind?: string, target: string, concurrency: number, seconds: number}} stage */
const add = (stage) => schedule.closed({ ...stage, operations: operationsOf(targets[stage.target]), timeout: values.TIMEOUT_SECONDS });

for (const target of Object.keys(targets)) {
  add({ name: `warmup-${target}`, title: 'warm-up', kind: 'warmup', target, concurrency: 10, seconds: values.WARMUP_SECONDS });
}
for (let round = 1; round <= values.ROUNDS; round++) {
  const order = round % 2 === 1 ? Object.keys(targets) : Object.keys(targets).reverse();
  for (const concurrency of values.LEVELS) {
    for (const target of order) {
      add({ name: `level-${concurrency}-${target}-${round}`, title: `${concurrency} at a time, ${target}, round ${round}`, target, concurrency, seconds: values.ROUND_SECONDS });
    }
  }
}

export const options = schedule.suite('cluster', chosen);

export default () => schedule.run();
