// @ts-check
// Slow: some clients read slowly, or nothing, while large messages go to all. Do the others get theirs in time, what becomes of
// the slow ones, and does the service's memory hold? The messages are broadcasts of the original protocol.
//
//   bin/soak run slow --slow-percent 20 --slow-kb 1

import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';
import { plan, suite } from 'k6/x/soak';

import { oneRunner, streamConfig, teardown } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { number } from '../lib/settings.js';
import { everyOf, openShare, settledAfter } from '../lib/share.js';
import { checkStream, closeAll, sleep, Stream } from '../lib/stream.js';

const full = {
  CONNECTIONS: 500,
  SLOW_PERCENT: 10,
  SLOW_KB: 0,
  SLOW_SECONDS: 60,
  AFTER_SECONDS: 20,
  MESSAGE_KB: 32,
  MESSAGE_RATE: 4,
  FILL_KB: 4096,
  NOOP_INTERVAL: 1,
  LATE_MS: 1000,
};

const { name, values, parameters } = profile({
  full,
  smoke: { ...full, CONNECTIONS: 50, SLOW_PERCENT: 20, SLOW_SECONDS: 9, AFTER_SECONDS: 3, MESSAGE_KB: 60, MESSAGE_RATE: 10 },
});
oneRunner('slow');
const every = everyOf('SLOW_PERCENT', values.SLOW_PERCENT, values.CONNECTIONS);
const perSecond = values.MESSAGE_KB * values.MESSAGE_RATE;
if (values.SLOW_SECONDS < 2 || values.AFTER_SECONDS < 2) {
  throw new Error(`SLOW_SECONDS is ${values.SLOW_SECONDS} and AFTER_SECONDS ${values.AFTER_SECONDS}: memory is read once a second, so write at least 2.`);
}
if (!(values.MESSAGE_KB >= 1 && values.MESSAGE_RATE > 0) || (perSecond - values.SLOW_KB) * values.SLOW_SECONDS < values.FILL_KB) {
  throw new Error(`MESSAGE_KB=${values.MESSAGE_KB} at MESSAGE_RATE=${values.MESSAGE_RATE} are ${perSecond} KB per second: in ${values.SLOW_SECONDS} seconds no stream that reads ${values.SLOW_KB} KB per second (SLOW_KB) falls behind by ${values.FILL_KB} KB (FILL_KB).`);
}
const limits = { MAX_HELD_LATE: number('MAX_HELD_LATE', 0), MAX_GROWTH: number('MAX_GROWTH', 200), CUT_SLOW: number('CUT_SLOW', -1) };

/** Two seconds more, in which the service's memory is seen before. */
const settled = settledAfter({ connections: values.CONNECTIONS, noopInterval: values.NOOP_INTERVAL }) + 2;
const stage = { name: 'slow', title: 'slow', kind: 'load', start: settled, seconds: values.SLOW_SECONDS, concurrency: values.CONNECTIONS, requests: Math.ceil(values.CONNECTIONS / every) };
const seconds = settled + values.SLOW_SECONDS + values.AFTER_SECONDS + 5;
const config = streamConfig({ connections: values.CONNECTIONS, seconds, noopInterval: values.NOOP_INTERVAL, lateMs: values.LATE_MS });
plan(config);
suite({
  name: 'slow', profile: name, splitBy: ['scenario'], stages: [stage],
  parameters: { ...parameters, ...Object.fromEntries(Object.entries(limits).map(([key, value]) => [key, String(value)])), EVERY: String(every), GAUGE: __ENV.GAUGE || '' },
});

export const options = {
  scenarios: { slow: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${seconds + teardown(config)}s`, gracefulStop: '10s' } },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code', 'check'],
};

/** Streams that were slow, at the moment from which they were. */
const begun = new Counter('slow_begun');
/** Messages that the service took for all streams, and those that it did not take. */
const taken = new Counter('slow_taken');
const untaken = new Counter('slow_untaken');
/** Of these messages, those that are due on streams that were held, and came there. */
const due = new Counter('slow_due');
const arrived = new Counter('slow_arrived');
/** Slow streams that were cut or had fallen behind by FILL_KB when they read on; and by how many KB each had that was not cut. */
const filled = new Counter('slow_filled');
const behind = new Trend('slow_behind');
/** Slow streams that ended: how long after they were slow, and those of which that was seen only when they read on. */
const cut = new Trend('slow_cut', true);
const cutUnseen = new Counter('slow_cut_unseen');
/** Slow streams that were not cut and got all messages in the end. */
const whole = new Counter('slow_whole');

const EVENT = 'filler';
/** Messages of another run on the same service are none of ours. */
const RUN = Math.random().toString(36).slice(2);
const tags = { scenario: stage.name };
const POST_TIMEOUT = '10s';

class Reader extends Stream {
  /** @param {number} n */
  constructor(n) {
    super(config, `${config.prefix}${n}`, n);
    this.slow = n % every === 0;
    /** Messages that came, and the number of the last. */
    this.got = 0;
    this.last = 0;
    this.overAt = 0;
    this.source.addEventListener(EVENT, this);
  }

  /** @param {any} event */
  handleEvent(event) {
    if (event.type !== EVENT) {
      super.handleEvent(event);
      if (this.over && !this.overAt) {
        this.overAt = Date.now();
      }
      return;
    }
    const [run, n] = event.data.slice(0, 40).split(' ');
    if (run === RUN && Number(n) > this.last) {
      this.last = Number(n);
      this.got++;
    }
  }
}

export default async function () {
  const start = Date.now();
  const streams = await openShare(config, (n) => new Reader(n), 1);
  await sleep(Math.max(start + settled * 1000 - Date.now(), 0));
  const slow = streams.filter((stream) => stream.slow && beSlow(stream, values.SLOW_KB * 1024));
  const held = streams.filter((stream) => !stream.slow);
  const began = Date.now();
  begun.add(slow.length, tags);
  const sent = await fill(began);
  due.add(sent * held.length, tags);
  const readOn = Date.now();
  for (const stream of slow) {
    const missing = (sent - stream.got) * values.MESSAGE_KB;
    if (stream.over || missing >= values.FILL_KB) {
      filled.add(1, tags);
    }
    if (!stream.over) {
      behind.add(missing, tags);
      beSlow(stream, Infinity);
    }
  }
  await sleep(values.AFTER_SECONDS * 1000);
  for (const stream of slow) {
    if (stream.overAt > 0 && stream.overAt < readOn) {
      cut.add(stream.overAt - began, tags);
    } else if (stream.overAt > 0) {
      cutUnseen.add(1, tags);
    } else if (stream.got >= sent) {
      whole.add(1, tags);
    }
  }
  arrived.add(held.reduce((sum, stream) => sum + Math.min(stream.got, sent), 0), tags);
  await closeAll(held, checkStream);
  await Promise.all(slow.filter((stream) => !stream.over).map(async (stream) => {
    await stream.requestClose();
    await stream.ended();
  }));
}

/**
 * @param {Reader} stream
 * @param {number} rate bytes per second
 * @returns {boolean} whether it is read so
 */
function beSlow(stream, rate) {
  stream.source.idleTimeout = 0; // the silence is ours
  return stream.source.slow(rate);
}

/**
 * Sends messages to all for SLOW_SECONDS.
 *
 * @param {number} began
 * @returns {Promise<number>} how many the service took
 */
async function fill(began) {
  const padding = 'x'.repeat(values.MESSAGE_KB * 1024 - 60);
  let sent = 0;
  for (let n = 1; n <= values.SLOW_SECONDS * values.MESSAGE_RATE; n++) {
    await sleep(Math.max(began + (n * 1000) / values.MESSAGE_RATE - Date.now(), 0));
    if (Date.now() - began > (values.SLOW_SECONDS + 1) * 1000) {
      break; // the service takes them too slowly
    }
    const { status } = await http.asyncRequest('POST', `${config.backendUrl}/event/broadcast?event=${EVENT}`, `${RUN} ${n} ${padding}`, { headers: config.headers, timeout: POST_TIMEOUT });
    if (status === 200) {
      sent++;
      taken.add(1, tags);
    } else {
      untaken.add(1, tags);
    }
  }
  await sleep(Math.max(began + values.SLOW_SECONDS * 1000 - Date.now(), 0));
  return sent;
}
