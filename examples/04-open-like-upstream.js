// @ts-check
// 04: sse.open with the API of xk6-sse. It blocks the virtual user until the stream ends, so each user has
// one stream; with EventSource (01) a user can have thousands. xk6-sse also calls the handler of 'event' for
// comments without data, and accepts any content type; here { everyBlock: true, anyContentType: true } does both.
//
//   bin/backend --noop-interval 1s &
//   bin/k6 run examples/04-open-like-upstream.js

import { check } from 'k6';
import sse from 'k6/x/sse';

const BACKEND_URL = __ENV.BACKEND_URL || 'http://localhost:8080';

export default function () {
  let noops = 0;
  const response = sse.open(`${BACKEND_URL}/event/connect?id=example-04`, { tags: { name: 'connect' } }, (client) => {
    client.on('event', (event) => {
      if (event.data === '0' && ++noops === 3) {
        client.close();
      }
    });
    client.on('error', (e) => console.error(e.error()));
  });
  check(response, { 'status is 200': (r) => r.status === 200 });
  check(noops, { 'received three noops': (n) => n === 3 });
}
