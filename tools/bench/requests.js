// @ts-check
// Requests one operation in a closed loop of k6/x/requests. As in a suite, all results are counted, with a threshold.

import { url } from 'k6/x/soak';

import { operationsOf } from '../../load-tests/lib/operations.js';
import { Schedule } from '../../load-tests/lib/schedule.js';

const schedule = new Schedule(1);
schedule.closed({
  name: 'closed',
  operations: operationsOf(url('BACKEND_URL')).filter(({ name }) => name === 'math.multiply'),
  concurrency: Number(__ENV.CONCURRENCY || 50),
  seconds: Number(__ENV.WINDOW || 10),
  timeout: 10,
});

export const options = {
  ...schedule.suite('throughput', { name: 'bench', parameters: {} }),
  thresholds: { request_duration: ['p(95)<10000'] },
};

export default () => schedule.run();
