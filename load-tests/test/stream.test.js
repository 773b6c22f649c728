// @ts-check
// lib/stream.js with a real service, one noop every half second: opening, requesting the close, teardown.

import exec from 'k6/execution';
import { plan } from 'k6/x/soak';
import { EventSource } from 'k6/x/sse';

import { streamConfig } from '../lib/config.js';
import { noopService } from '../lib/service.js';
import { checkStream, closeAll, openInGroups, settled, sleep, Stream, untilOver } from '../lib/stream.js';
import { equal, run, that, thresholds as cases } from './cases.js';

const INTERVAL = 0.5;
const service = noopService(INTERVAL);
const config = streamConfig(service, { connections: 100, seconds: 60, lateMs: 1000 });
/** Nobody listens there. */
const deaf = { ...config, service: { ...service, connect: () => ({ url: 'http://127.0.0.1:1/', method: 'GET', headers: {} }) } };
plan(config);

export const options = {
  batchPerHost: 0,
  thresholds: {
    ...cases,
    // Twelve good streams, and two that never opened.
    'checks{check:Get status was 200}': [`rate==${12 / 14}`],
    'checks{check:Delete status was 200}': [`rate==${12 / 14}`],
    'checks{check:Received all messages}': [`rate==${12 / 14}`],
    'http_reqs{name:DELETE /event/forcedisconnect}': ['count==13'],
  },
};

let ids = 0;
const open = (where = config) => new Stream(where, `test-${ids++}`);
const since = (/** @type {number} */ began) => Date.now() - began;

/** A stream of which only the ledger's word and the close count. @returns {any} */
function fake(/** @type {number[]} */ undecided, /** @type {Partial<Stream>} */ more = {}) {
  return {
    log: [],
    ledger: { get undecidedMs() { return undecided.shift() ?? 0; } },
    async requestClose() { this.log.push(`requested with ${undecided.length} left`); },
    async ended() { this.log.push('ended'); },
    ...more,
  };
}

export default run({
  'streams open at the planned pace, bring noops, and are closed by the server on request': async () => {
    /** @type {Stream[]} */
    const streams = [];
    const began = Date.now();
    /** @type {number[]} */
    const numbers = [];
    await openInGroups(streams, { target: 12, group: 5, pause: 100 }, (n) => {
      numbers.push(n);
      that(since(began) >= Math.floor(n / 5) * 100, `stream ${n} begins after ${since(began)} ms`);
      return open();
    });
    that(since(began) >= 300, 'there is a pause after the last group too');
    equal(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    await openInGroups(streams, { target: 12, group: 5, pause: 100 }, () => { throw new Error('there are enough'); });

    await untilOver(streams, 2.2 * INTERVAL * 1000);
    that(streams.every(({ opened, over }) => opened && !over), 'all are open');
    /** @type {Stream[]} */
    const ended = [];
    await closeAll(streams, (stream) => ended.push(stream));
    equal(ended.length, 12);
    for (const stream of ended) {
      checkStream(stream);
      equal([stream.ledger.state, stream.deleteStatus, stream.over], ['completed', 200, true], stream.id);
      that(stream.ledger.received >= 2, `${stream.ledger}`);
    }
  },
  'a stream is left alone while a noop is due on it, and others are closed meanwhile': async () => {
    const [due, ready] = [fake([60, 30, 0]), fake([])];
    /** @type {unknown[]} */
    const ended = [];
    const began = Date.now();
    await closeAll([due, ready], (stream) => ended.push(stream));
    equal(due.log, ['requested with 0 left', 'ended']);
    equal(ended.indexOf(ready), 0, 'the first to end');
    that(since(began) >= 90, `it was left alone for ${since(began)} ms`);
  },
  'so many requests are under way at a time': async () => {
    let [now, most] = [0, 0];
    const slow = Array.from({ length: 50 }, () => fake([], {
      async requestClose() {
        most = Math.max(most, ++now);
        await sleep(5);
        now--;
      },
    }));
    await closeAll(slow, () => {});
    equal([exec.instance.vusInitialized, most], [1, 20]);
  },
  'a stream that never opened is given up, without a request': async () => {
    const streams = [open(deaf), open(deaf)];
    await Promise.all(streams.map(settled));
    await closeAll(streams, checkStream);
    equal(streams.map(({ ledger, deleteStatus }) => [ledger.state, ledger.reason, deleteStatus]), [['refused', 'refused', 0], ['refused', 'refused', 0]]);
  },
  'no one waits for streams that are over': async () => {
    const began = Date.now();
    await untilOver([open(deaf), open(deaf)], 5000);
    that(since(began) < 4000, `after ${since(began)} ms`);
  },
  'who has no stream waits': async () => {
    const began = Date.now();
    await untilOver([], 50);
    that(since(began) >= 50, `only ${since(began)} ms`);
  },
  'a stream that does not end after the request is closed after END_TIMEOUT': async () => {
    const stream = open({ ...config, endTimeout: 0.2 });
    await settled(stream);
    const began = Date.now();
    await stream.ended(); // nobody told the server
    that(since(began) >= 200, `closed after ${since(began)} ms`);
    equal(stream.source.readyState, EventSource.CLOSED);
  },
  'a request that the server refuses leaves its status': async () => {
    const stream = open({ ...config, endTimeout: 0.2 });
    await settled(stream);
    stream.id = 'someone-else';
    await stream.requestClose();
    await stream.ended();
    equal(stream.deleteStatus, 404);
    that(!stream.ledger.faultless, `${stream.ledger}`);
  },
});
