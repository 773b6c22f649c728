// @ts-check
// Ramp-up: stages with a constant rate of requests, each higher than the previous one, until the service breaks. The
// model is open: requests start at their rate even if the service is slower, and the duration of each request is
// measured from its intended start.
//
//   bin/soak run rampup                  with a verdict and the breaking point
//   bin/k6 run load-tests/http/rampUp.js --env BACKEND_URL=http://HOST --env PROFILE=smoke

import { profile, url } from 'k6/x/soak';

import { operationsOf } from '../lib/operations.js';
import { Schedule } from '../lib/schedule.js';

const full = {
  STAGES: [100, 1000, 2000, 4000, 8000, 16000, 32000, 64000], // the reference service behind nginx breaks before the last rate; at 100/s its cores are idle
  STAGE_SECONDS: 30,
  WARMUP_SECONDS: 10,
  CEILING: 0,
  SEARCH: 1,
  MAX_CONNECTIONS: 2000,
  MIN_RATE: 0,
  MAX_FAILED_PERCENT: 1,
  MAX_P95_MS: 500,
  MIN_ANSWERED_PERCENT: 95,
  TIMEOUT_SECONDS: 10,
};

const chosen = profile('rampup', {
  full,
  smoke: { ...full, STAGES: [20, 50, 100], SEARCH: 0, STAGE_SECONDS: 3, WARMUP_SECONDS: 1, TIMEOUT_SECONDS: 2 },
});
const { values } = chosen;

const operations = operationsOf(url('BACKEND_URL'));

/**
 * Returns the number of connections for a rate, at most MAX_CONNECTIONS. Below that limit, requests do not wait for a
 * connection while responses take at most a second or twice MAX_P95_MS, whichever is longer. If MAX_P95_MS is 0, twice
 * the timeout applies instead.
 *
 * @param {number} rate
 */
function connections(rate) {
  const seconds = (values.MAX_P95_MS || values.TIMEOUT_SECONDS * 1000) / 1000;
  return Math.max(Math.min(Math.max(Math.ceil(2 * seconds * rate), rate, 20), values.MAX_CONNECTIONS), 1);
}

const schedule = new Schedule(chosen.runners);
const rates = values.STAGES.filter((rate) => values.CEILING === 0 || rate <= values.CEILING);
if (rates.length === 0) {
  throw new Error(`CEILING must be at least the lowest of STAGES (${Math.min(...values.STAGES)}), got ${values.CEILING}`);
}
for (const [i, rate] of [rates[0], ...rates].entries()) {
  schedule.open({
    name: i === 0 ? 'warmup' : `rate-${rate}`,
    kind: i === 0 ? 'warmup' : 'load',
    operations,
    rate,
    seconds: i === 0 ? values.WARMUP_SECONDS : values.STAGE_SECONDS,
    connections: connections(rate),
    timeout: values.TIMEOUT_SECONDS,
  });
}

export const options = schedule.suite('rampup', chosen);

export default () => schedule.run();
