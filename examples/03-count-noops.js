// @ts-check
// 03: count noops with a Ledger, in Go, without JavaScript per noop. A Ledger expects noops by the numbers in `id:`, or
// by the interval if the service sends no ids.
//
//   bin/backend --noop-interval 1s &
//   bin/k6 run examples/03-count-noops.js
//
// To cause a loss: bin/backend --noop-interval 1s --backend-fault drop:noop=2

import { check } from 'k6';
import { EventSource, Ledger, plan } from 'k6/x/soak';

const BACKEND_URL = __ENV.BACKEND_URL || 'http://localhost:8080';
const NOOP_INTERVAL = Number(__ENV.NOOP_INTERVAL || 1);

// A Ledger expects one noop per NOOP_INTERVAL.
plan({ connections: 1, seconds: 60, noopInterval: NOOP_INTERVAL, backendUrl: BACKEND_URL, prefix: 'example-03-' });

export default function () {
  const ledger = new Ledger('example-03-0');
  const source = new EventSource(`${BACKEND_URL}/event/connect?id=${ledger.id}`, { ledger });

  setTimeout(() => {
    source.close();
    console.log(`${ledger}`);
    check(ledger, {
      'received noops': (l) => l.received > 0,
      'no noop is missing': (l) => l.missed === 0,
      'no noop is duplicated': (l) => l.duplicated === 0,
    });
  }, 4.5 * NOOP_INTERVAL * 1000);
}
