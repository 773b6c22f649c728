// @ts-check
// 09: check a stream that ends by itself, here an answer of a language model: the time to its first content, the
// gaps between chunks, and whether its terminal event arrived. `bin/soak run finite` also counts lost chunks.
//
//   bin/backend model &
//   bin/k6 run examples/09-finite-stream.js

import { check } from 'k6';
import { Trend } from 'k6/metrics';
import { open } from 'k6/x/soak';

const [ttft, gap] = [new Trend('ttft', true), new Trend('inter_chunk_latency', true)];
const URL = `${__ENV.BACKEND_URL || 'http://localhost:8090'}/v1/chat/completions`;

export const options = {
  scenarios: { answers: { executor: 'constant-arrival-rate', rate: 5, duration: '4s', preAllocatedVUs: 20 } },
  thresholds: { checks: ['rate==1'], ttft: ['p(95)<2000'], inter_chunk_latency: ['p(99)<1000'] },
};

export default function () {
  const messages = [{ role: 'user', content: __ENV.PROMPT || 'Count to forty.' }];
  const body = JSON.stringify({ model: 'numbered', stream: true, messages });
  let [last, chunks, terminal] = [Date.now(), 0, ''];
  const response = open(URL, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body }, (client) => {
    client.on('error', (e) => console.error(e.error()));
    client.on('event', ({ data, receivedAt }) => {
      terminal = data;
      if (data !== '[DONE]' && JSON.parse(data).choices[0]?.delta.content) {
        (chunks++ ? gap : ttft).add(receivedAt - last);
        last = receivedAt;
      }
    });
  });
  check(response, { 'status is 200': (r) => r.status === 200, 'complete': () => chunks > 0 && terminal === '[DONE]' });
}
