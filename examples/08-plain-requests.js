// @ts-check
// 08: plain requests in Go, 200 per second, with a check of each response. The promise resolves to the counts;
// thresholds limit the durations. A failed request does not end the iteration; the checks of the script fail.
//
//   bin/backend &
//   bin/k6 run examples/08-plain-requests.js
//
// API: load-tests/types/requests.d.ts.

import { check } from 'k6';
import { open } from 'k6/x/requests';

const BACKEND_URL = __ENV.BACKEND_URL || 'http://localhost:8080';
const SECONDS = Number(__ENV.SECONDS || 3);

export const options = {
  // One virtual user makes all requests; `concurrency` limits how many are open at a time.
  scenarios: { load: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${SECONDS + 30}s` } },
  thresholds: {
    checks: ['rate==1'],
    'request_duration{code:ok}': ['p(95)<1000'], // ms
  },
};

export default async function () {
  const counts = await open({
    operations: [
      { name: 'add', url: `${BACKEND_URL}/default/services/calculator/math.add?a=9&b=22`, want: { json: 31, at: 'result' } },
      { name: 'health', url: `${BACKEND_URL}/healthz` },
    ],
    rate: 200,
    seconds: SECONDS,
    concurrency: 50,
  });
  check(counts, {
    'every request was made': ({ dropped }) => dropped === 0,
    'every response was correct': ({ made, failed }) => made > 0 && failed === 0,
  });
}
