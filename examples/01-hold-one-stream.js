// @ts-check
// 01: keep one stream open with EventSource, as in a browser. EventSource does not block. An iteration lasts until its
// sources are closed.
//
//   make build
//   bin/backend --noop-interval 1s &
//   bin/k6 run examples/01-hold-one-stream.js
//   kill %1                    # each example starts its own backend on the same port
//
// --env BACKEND_URL=http://HOST selects another service, --env SECONDS=60 keeps the stream open longer.

import { check } from 'k6';
import { EventSource } from 'k6/x/soak';

const BACKEND_URL = __ENV.BACKEND_URL || 'http://localhost:8080';
const SECONDS = Number(__ENV.SECONDS || 4);

export default function () {
  const source = new EventSource(`${BACKEND_URL}/event/connect?id=example-01`);
  let noops = 0;

  source.onopen = () => console.log(`open after ${source.connectMs.toFixed(1)} ms`);
  source.onmessage = () => noops++;
  source.onerror = (e) => console.error(`${e.reason}: ${e.message}`);

  setTimeout(() => {
    check(source, { 'the stream is still open': (s) => s.readyState === EventSource.OPEN });
    check(noops, { 'received noops': (n) => n > 0 });
    source.close();
  }, SECONDS * 1000);
}
