// @ts-check
// 02: wait for one event, with a timeout. Here the script asks the service to send it; in your own test a
// request, another user or a job causes it.
//
//   bin/backend &
//   bin/k6 run examples/02-wait-for-an-event.js

import { check } from 'k6';
import http from 'k6/http';
import { EventSource } from 'k6/x/soak';

const BACKEND_URL = __ENV.BACKEND_URL || 'http://localhost:8080';

/**
 * The next event of that name.
 *
 * @param {EventSource} source
 * @param {string} name
 * @param {number} ms
 * @returns {Promise<import('k6/x/soak').MessageEvent>}
 */
function next(source, name, ms) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no event ${name} within ${ms} ms`)), ms);
    const arrived = (/** @type {import('k6/x/soak').MessageEvent} */ event) => {
      clearTimeout(timer);
      resolve(event);
    };
    source.addEventListener(name, arrived, { once: true });
  });
}

export default async function () {
  const source = new EventSource(`${BACKEND_URL}/event/connect?id=example-02`);
  try {
    await next(source, 'open', 5000);

    const greeting = next(source, 'greeting', 5000); // listen first, then ask for it
    http.post(`${BACKEND_URL}/event/send?id=example-02&event=greeting`, 'hello');

    check(await greeting, { 'the greeting says hello': (event) => event.data === 'hello' });
  } finally {
    source.close(); // or the iteration goes on, and waits for it
  }
}
