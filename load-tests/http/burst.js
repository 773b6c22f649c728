// @ts-check
// Bursts: many requests at once, each on its own open connection, and a health check after each burst. Requests in
// sequence follow. The suite finds how many simultaneous requests the service supports.
//
//   bin/soak run burst                   with a verdict
//   bin/k6 run load-tests/http/burst.js --env BACKEND_URL=http://HOST --env PROFILE=smoke

import { profile, url } from 'k6/x/soak';

import { operationsOf } from '../lib/operations.js';
import { Schedule } from '../lib/schedule.js';

const full = {
  BURSTS: [100, 200, 500, 1000, 2000],
  BURST_SECONDS: 15,
  SEQUENCE: 1000,
  SEQUENCE_SECONDS: 30,
  MAX_FAILED_PERCENT: 1,
  MAX_P95_MS: 5000,
  MIN_ANSWERED_PERCENT: 99,
  TIMEOUT_SECONDS: 10,
};

const chosen = profile('burst', {
  full,
  smoke: { ...full, BURSTS: [20, 100], BURST_SECONDS: 3, SEQUENCE: 50, SEQUENCE_SECONDS: 2, TIMEOUT_SECONDS: 2 },
});
const { values } = chosen;

const backend = url('BACKEND_URL');
const operations = operationsOf(backend);
const healthCheck = operations.slice(-1);

const schedule = new Schedule(chosen.runners);
for (const requests of values.BURSTS) {
  schedule.burst({ name: `burst-${requests}`, requests, seconds: values.BURST_SECONDS, timeout: values.TIMEOUT_SECONDS, operations });
  health(`burst-${requests}`);
}
schedule.closed({
  name: 'sequence',
  title: `${values.SEQUENCE} in sequence`,
  kind: 'sequence',
  concurrency: 1,
  requests: values.SEQUENCE,
  seconds: values.SEQUENCE_SECONDS,
  timeout: values.TIMEOUT_SECONDS,
  operations,
});
health('sequence');

/**
 * Adds a health check.
 *
 * @param {string} previous name of the previous stage
 */
function health(previous) {
  schedule.closed({
    name: `health-${previous}`,
    title: `health after ${previous}`,
    kind: 'health',
    target: previous,
    concurrency: 1,
    requests: 1,
    seconds: 1,
    timeout: values.TIMEOUT_SECONDS,
    operations: healthCheck,
  });
}

export const options = schedule.suite('burst', chosen);

export default () => schedule.run();
