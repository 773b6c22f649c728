// @ts-check
// Slow: some clients read slowly, or nothing, while large messages go to all. Do the others get theirs in time, what becomes of
// the slow ones, and does the service's memory hold? Of a described service the messages are those that the run publishes; else
// they are broadcasts of the original protocol.
//
//   bin/soak run slow --slow-percent 20 --slow-kb 1
//   bin/soak run slow --service nchan --backend-url http://HOST --topics 1 --publish-rate 4 --gauge pid:1234

import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';
import { plan, suite } from 'k6/x/soak';

import { DISCONNECT_LEAD, oneRunner } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { NOOP, number, whole } from '../lib/settings.js';
import { everyOf, openShare, settledAfter, sharedConfig, sharedOptions } from '../lib/share.js';
import { checkStream, closeAll, sleep, Stream } from '../lib/stream.js';

const full = { SLOW_PERCENT: 10, SLOW_KB: 0, AFTER_SECONDS: 20, MESSAGE_RATE: 4, FILL_KB: 4096 };

const { name, values, parameters } = profile({
  full,
  smoke: { ...full, SLOW_PERCENT: 20, AFTER_SECONDS: 3, MESSAGE_RATE: 10 },
});
oneRunner('slow');
const shared = sharedConfig();
const { service, config } = shared;
/** Messages are published as the description says; noop has broadcasts, which are events beside its noops. */
const publishes = service.name !== NOOP;
const every = everyOf('SLOW_PERCENT', values.SLOW_PERCENT, config.connections);
const kb = whole('MESSAGE_KB', 32);

/** Messages per second and stream. */
const rate = publishes ? config.publishRate / config.topics : values.MESSAGE_RATE;

/** Two seconds more, in which the service's memory is seen before. */
const settled = settledAfter(config) + 2;
const SLOW = config.seconds - DISCONNECT_LEAD - settled - values.AFTER_SECONDS;
const LEAST = 2;
if (SLOW < LEAST || values.AFTER_SECONDS < LEAST) {
  throw new Error(`SECONDS is ${config.seconds} and AFTER_SECONDS ${values.AFTER_SECONDS}: ${config.connections} streams take ${settled} seconds to open, and memory is read once a second, so write at least ${LEAST} for AFTER_SECONDS, and ${settled + LEAST + DISCONNECT_LEAD} more than that for SECONDS.`);
}
if (publishes && !service.published) {
  throw new Error(`the description of ${service.name} has no publish, so nothing fills the buffers of clients that do not read: say there how a message is published.`);
}
if (publishes && kb > 0 && !service.padded) {
  throw new Error(`MESSAGE_KB is ${kb}, but what the description of ${service.name} publishes has no {padding}: put it into publish.body where the service takes any text, such as "pad":"{padding}".`);
}
if (!(kb >= 1 && rate > 0) || (kb * rate - values.SLOW_KB) * SLOW < values.FILL_KB) {
  throw new Error(`${kb} KB (MESSAGE_KB) ${rate} times per second are ${kb * rate} KB per second on a stream: in ${SLOW} seconds none that reads ${values.SLOW_KB} KB per second (SLOW_KB) falls behind by ${values.FILL_KB} KB (FILL_KB); raise ${publishes ? 'PUBLISH_RATE' : 'MESSAGE_RATE'} or SECONDS.`);
}
/** Seconds after which the service may end a stream, whoever reads it. */
const lifetime = Math.min(service.lifetime || Infinity, config.tokenTtl || Infinity);
if (publishes && lifetime < config.seconds - DISCONNECT_LEAD) {
  throw new Error(`${service.name} may end its streams after ${lifetime} seconds (end.lifetime, TOKEN_TTL): nobody could tell one that was cut for being slow from one whose time was over. SECONDS is ${config.seconds}, so write at most ${Math.floor(lifetime) + DISCONNECT_LEAD}, or let streams live for longer.`);
}
const limits = { MAX_HELD_LATE: whole('MAX_HELD_LATE', 0), MAX_GROWTH: number('MAX_GROWTH', 200), CUT_SLOW: number('CUT_SLOW', -1) };

if (![-1, 0, 1].includes(limits.CUT_SLOW)) {
  throw new Error(`CUT_SLOW is ${limits.CUT_SLOW}: it must be 1 where the service has to cut slow streams, 0 where it must not, or -1.`);
}

const stage = { name: 'slow', title: 'slow', kind: 'load', start: settled, seconds: SLOW, concurrency: config.connections, requests: Math.ceil(config.connections / every) };
plan(config);
suite({
  name: 'slow', profile: name, splitBy: ['scenario'], stages: [stage],
  parameters: {
    ...parameters, ...Object.fromEntries(Object.entries(limits).map(([key, value]) => [key, String(value)])),
    MESSAGE_KB: String(kb), MESSAGE_RATE: String(rate), SLOW_SECONDS: String(SLOW), EVERY: String(every), GAUGE: __ENV.GAUGE || '',
  },
});

export const options = sharedOptions('slow', shared, 1);

/** Streams that were slow, at the moment from which they were. */
const begun = new Counter('slow_begun');
/** Broadcasts that the service took for all streams, and those that it did not take. */
const taken = new Counter('slow_taken');
const untaken = new Counter('slow_untaken');
/** Of these, those that are due on streams that were held, and came there. */
const due = new Counter('slow_due');
const arrived = new Counter('slow_arrived');
/** And those that came there once more, or behind a later one. */
const again = new Counter('slow_again');
/** Slow streams that were cut or had fallen behind by FILL_KB when they read on; and by how many KB each had that was not cut. */
const filled = new Counter('slow_filled');
const behind = new Trend('slow_behind');
/** Slow streams that ended: how long after they were slow, and those of which that was seen only when they read on. */
const cut = new Trend('slow_cut', true);
const cutUnseen = new Counter('slow_cut_unseen');
/** Slow streams that were not cut and got all broadcasts in the end. */
const complete = new Counter('slow_whole');

const EVENT = 'filler';
/** Messages of another run on the same service are none of ours. */
const RUN = Math.random().toString(36).slice(2);
const PADDING = 'x'.repeat(Math.max(kb * 1024 - 60, 0));
const tags = { scenario: stage.name };
const POST_TIMEOUT = '10s';

class Reader extends Stream {
  /** @param {number} n */
  constructor(n) {
    const slow = n % every === 0; // who is cut does not come back, also where clients do otherwise
    super(slow ? { ...config, reconnect: false, held: false } : config, `${config.prefix}${n}`, n);
    this.slow = slow;
    /** Broadcasts that came, and the number of the last. */
    this.came = 0;
    this.last = 0;
    /** Broadcasts that came again, or too late. */
    this.again = 0;
    /** How many messages it had when others began to be slow. */
    this.before = 0;
    this.overAt = 0;
    if (!publishes) {
      this.source.addEventListener(EVENT, this);
    }
  }

  /** Messages that came since some are slow. */
  get got() {
    return (publishes ? this.ledger.received : this.came) - this.before;
  }

  /** @param {any} event */
  handleEvent(event) {
    if (publishes || event.type !== EVENT) {
      super.handleEvent(event);
      if (this.over && !this.overAt) {
        this.overAt = Date.now();
      }
      return;
    }
    const [run, n] = event.data.slice(0, 40).split(' ');
    if (run !== RUN || event.data.length !== `${RUN} ${n} `.length + PADDING.length) { // of another run, or not all of it
      return;
    }
    if (Number(n) > this.last) {
      this.last = Number(n);
      this.came++;
    } else {
      this.again++;
    }
  }
}

export default async function () {
  const start = Date.now();
  const streams = await openShare(config, (n) => new Reader(n), 1);
  await sleep(Math.max(start + settled * 1000 - Date.now(), 0));
  for (const stream of streams) {
    stream.before += stream.got;
  }
  const slow = streams.filter((stream) => stream.slow && beSlow(stream, values.SLOW_KB * 1024));
  const held = streams.filter((stream) => !stream.slow);
  const began = Date.now();
  begun.add(slow.length, tags);
  const sent = publishes ? await follow(held) : await broadcast(began);
  const readOn = Date.now();
  for (const stream of slow) {
    const missing = (sent - stream.got) * kb;
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
    } else if (!publishes && stream.got >= sent) { // of published messages the verdict knows
      complete.add(1, tags);
    }
  }
  if (!publishes) {
    due.add(sent * held.length, tags);
    again.add(held.reduce((sum, stream) => sum + stream.again, 0), tags);
    arrived.add(held.reduce((sum, stream) => sum + Math.min(stream.got, sent), 0), tags);
  }
  await closeAll(held, checkStream);
  await Promise.all(slow.filter((stream) => !stream.over).map(async (stream) => {
    await stream.requestClose();
    await stream.ended();
  }));
}

/**
 * @param {Reader} stream
 * @param {number} bytes per second
 * @returns {boolean} whether it is read so
 */
function beSlow(stream, bytes) {
  stream.source.idleTimeout = 0; // the silence is ours
  return stream.source.slow(bytes);
}

/**
 * Waits while messages are published, which are dealt round to the topics.
 *
 * @param {Reader[]} held
 * @returns {Promise<number>} how many came on a stream that is read
 */
async function follow(held) {
  await sleep(SLOW * 1000);
  return held.reduce((most, stream) => Math.max(most, stream.got), 0);
}

/**
 * Sends broadcasts for as long as some are slow.
 *
 * @param {number} began
 * @returns {Promise<number>} how many the service took
 */
async function broadcast(began) {
  let sent = 0;
  for (let n = 1; n <= SLOW * rate; n++) {
    await sleep(Math.max(began + (n * 1000) / rate - Date.now(), 0));
    if (Date.now() - began > (SLOW + 1) * 1000) {
      break; // the service takes them too slowly
    }
    const { status } = await http.asyncRequest('POST', `${config.backendUrl}/event/broadcast?event=${EVENT}`, `${RUN} ${n} ${PADDING}`, { headers: config.headers, redirects: 0, timeout: POST_TIMEOUT });
    if (status === 200) {
      sent++;
      taken.add(1, tags);
    } else {
      untaken.add(1, tags);
    }
  }
  await sleep(Math.max(began + SLOW * 1000 - Date.now(), 0));
  return sent;
}
