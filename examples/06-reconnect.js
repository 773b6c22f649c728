// @ts-check
// 06: resume after a disconnect. EventSource reconnects and sends the id of the last event that it received
// (`Last-Event-ID`); the service replays the events after it. RECONNECT=1 does this in a soak.
//
//   bin/backend --noop-interval 1s --backend-fault reset:noop=2 &
//   bin/k6 run examples/06-reconnect.js

import { check } from 'k6';
import { EventSource } from 'k6/x/soak';

const BACKEND_URL = __ENV.BACKEND_URL || 'http://localhost:8080';
const SECONDS = Number(__ENV.SECONDS || 6);

export default function () {
  const source = new EventSource(`${BACKEND_URL}/event/connect?id=example-06`, { reconnectDelay: '500ms' });
  let streams = 0;
  /** @type {number[]} */
  const numbers = [];

  source.onopen = () => streams++;
  source.onmessage = (event) => numbers.push(Number(event.lastEventId));
  source.onerror = (e) => console.log(`${e.reason}, reconnect in ${e.retryMs} ms`);

  setTimeout(() => {
    source.close();
    console.log(`received noops ${numbers.join(' ')}; streams: ${streams}`);
    check(streams, { 'reconnected': (n) => n > 1 });
    check(numbers, { 'no noop is missing': (all) => all.length > 2 && all.every((n, i) => n === i + 1) });
  }, SECONDS * 1000);
}
