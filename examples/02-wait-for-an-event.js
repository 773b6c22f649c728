// @ts-check
// 02: wait for one event, with a timeout. Here a request of the script causes the event. In your own test,
// another user or a job may cause it.
//
//   bin/backend &
//   bin/k6 run examples/02-wait-for-an-event.js

import { check } from 'k6';
import http from 'k6/http';
import { EventSource } from 'k6/x/soak';

const BACKEND_URL = __ENV.BACKEND_URL || 'http://localhost:8080';

/**
 * Returns the next event with this name.
 *
 * @param {EventSource} source
 * @param {string} name
 * @param {number} ms
 * @returns {Promise<import('k6/x/soak').MessageEvent>}
 */
function next(source, name, ms) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no event ${name} within ${ms} ms`)), ms);
    const listener = (/** @type {import('k6/x/soak').MessageEvent} */ event) => {
      clearTimeout(timer);
      resolve(event);
    };
    source.addEventListener(name, listener, { once: true });
  });
}

export default async function () {
  const source = new EventSource(`${BACKEND_URL}/event/connect?id=example-02`);
  try {
    await next(source, 'open', 5000);

    const greeting = next(source, 'greeting', 5000); // listen before the request
    http.post(`${BACKEND_URL}/event/send?id=example-02&event=greeting`, 'hello');

    check(await greeting, { 'the greeting says hello': (event) => event.data === 'hello' });
  } finally {
    source.close(); // the iteration waits for open sources
  }
}
