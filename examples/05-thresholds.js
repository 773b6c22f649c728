// @ts-check
// 05: thresholds set the exit code. Ten users keep one stream open each; if a threshold fails, k6 exits with 99.
//
//   bin/backend --noop-interval 1s &
//   bin/k6 run examples/05-thresholds.js
//
// To cause a failure, let the backend reset one stream: bin/backend --noop-interval 1s --backend-fault reset:noop=2

import { check } from 'k6';
import exec from 'k6/execution';
import { EventSource } from 'k6/x/soak';

const BACKEND_URL = __ENV.BACKEND_URL || 'http://localhost:8080';
const SECONDS = Number(__ENV.SECONDS || 4);

export const options = {
  scenarios: { hold: { executor: 'per-vu-iterations', vus: 10, iterations: 1 } },
  thresholds: {
    checks: ['rate==1'],
    sse_connection_opened: ['count==10'],
    sse_connecting: ['p(95)<1000'], // ms
    'sse_connection_closed{reason:reset}': ['count==0'],
  },
};

export default function () {
  const id = `example-05-${exec.scenario.iterationInTest}`;
  const source = new EventSource(`${BACKEND_URL}/event/connect?id=${id}`, { reconnect: false });
  setTimeout(() => {
    check(source, { 'the stream is still open': (s) => s.readyState === EventSource.OPEN });
    source.close();
  }, SECONDS * 1000);
}
