// @ts-check
// Fan-out: how long a broadcast takes to reach N connections, and whether it reaches all of them.
//
//   bin/soak run fanout

import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';
import { plan, suite } from 'k6/x/soak';

import { oneRunner, streamConfig } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { noopService } from '../lib/service.js';
import { checkStream, closeAll, openInGroups, sleep, Stream } from '../lib/stream.js';

const full = {
  LEVELS: [100, 500, 1000, 2000, 5000],
  BROADCASTS: 30,
  EVERY_MS: 1000,
  NOOP_INTERVAL: 1,
  LATE_MS: 1000,
  DELIVERY_SECONDS: 10,
};

const { name, values, parameters } = profile({
  full,
  smoke: { ...full, LEVELS: [20, 60], BROADCASTS: 5, EVERY_MS: 200 },
});
oneRunner('fanout');
const levels = values.LEVELS;
if (levels.some((n, i) => i > 0 && n <= levels[i - 1])) {
  throw new Error(`LEVELS is ${levels}: each level adds connections to the one before, so they have to rise.`);
}

/** Streams are to have seen two noops before the first broadcast, so that their numbering is known. */
const SETTLE = 2 * values.NOOP_INTERVAL * 1000;

const stageSeconds = Math.ceil((SETTLE + values.BROADCASTS * values.EVERY_MS) / 1000) + 2;
const stages = levels.map((n, i) => ({ name: `to-${n}`, title: `${n}`, kind: 'load', start: i * stageSeconds, seconds: stageSeconds, concurrency: n, requests: values.BROADCASTS }));
const seconds = stages.length * (stageSeconds + values.DELIVERY_SECONDS);
const config = streamConfig(noopService(values.NOOP_INTERVAL), { connections: levels[levels.length - 1], seconds: seconds + 10, lateMs: values.LATE_MS });
plan(config);
suite({ name: 'fanout', profile: name, parameters, splitBy: ['scenario'], stages });

export const options = {
  scenarios: { fanout: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${seconds + config.teardown}s`, gracefulStop: '10s' } },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code', 'check'],
};

/** The server's timestamp to the read here: of each delivery, and of the last of each broadcast. */
const latency = new Trend('fanout_latency', true);
const last = new Trend('fanout_last', true);
/** From the start of the POST to the read of each delivery. It does not depend on the server's clock. */
const sinceRequest = new Trend('fanout_since_request', true);
/** The POST, until the server has answered it. */
const post = new Trend('fanout_post', true);
const due = new Counter('fanout_due');
/** Subscribers that got a broadcast within DELIVERY_SECONDS, each counted once. */
const arrived = new Counter('fanout_arrived');
/** What else came: again to the same subscriber, after its time, without a time it was sent at, or what nobody sent it. */
const twice = new Counter('fanout_twice');
const overdue = new Counter('fanout_overdue');
const untimed = new Counter('fanout_untimed');
const strange = new Counter('fanout_strange');
/** Broadcasts that the server says it did not put on every stream. */
const short = new Counter('fanout_short');

const EVENT = 'announcement';

/** Broadcasts of another run on the same service are none of ours. */
const RUN = Math.random().toString(36).slice(2);

/** One message to all who are subscribed when it is sent. */
class Broadcast {
  /**
   * @param {string} text
   * @param {string} stage
   * @param {number} wanted
   */
  constructor(text, stage, wanted) {
    this.text = text;
    this.tags = { scenario: stage };
    /** Which of the subscribers have it: one who got it twice does not stand for one who never did. */
    this.has = new Uint8Array(wanted);
    this.left = wanted;
    this.latest = 0;
    /** When its POST started, in ms. */
    this.asked = Date.now();
    /** Its time is up. */
    this.over = false;
    this.complete = () => {};
  }

  /**
   * @param {number} subscriber
   * @param {number} at when it was read, in ms
   * @param {number} took milliseconds; NaN where it does not say when it was sent
   */
  arrive(subscriber, at, took) {
    if (this.has[subscriber]) {
      twice.add(1, this.tags);
      return;
    }
    this.has[subscriber] = 1;
    if (this.over) {
      overdue.add(1, this.tags);
      return;
    }
    sinceRequest.add(Math.max(at - this.asked, 0), this.tags);
    if (took >= 0) {
      latency.add(took, this.tags);
      this.latest = Math.max(this.latest, took);
    } else {
      untimed.add(1, this.tags);
    }
    if (--this.left === 0) {
      this.complete();
    }
  }
}

/** @type {Map<string, Broadcast>} all that were sent, by their text */
const broadcasts = new Map();

class Subscriber extends Stream {
  /** @param {number} number */
  constructor(number) {
    super(config, `${config.prefix}${number}`);
    this.number = number;
    this.source.addEventListener(EVENT, this);
  }

  /** @param {any} event */
  handleEvent(event) {
    if (event.type !== EVENT) {
      super.handleEvent(event);
      return;
    }
    const sent = broadcasts.get(event.data);
    if (!sent || this.number >= sent.has.length) {
      strange.add(1);
      return;
    }
    const at = /sent=([0-9]+)/.exec(event.comment);
    sent.arrive(this.number, event.receivedAt, at ? event.receivedAt - Number(at[1]) / 1000 : NaN);
  }
}

export default async function () {
  /** @type {Subscriber[]} */
  const streams = [];
  for (const stage of stages) {
    await openInGroups(streams, { target: stage.concurrency, group: 50, pause: 20 }, (n) => new Subscriber(n));
    await sleep(SETTLE);
    for (let n = 1; n <= values.BROADCASTS; n++) {
      const began = Date.now();
      await broadcast(stage.name, `${stage.name} broadcast ${n}`, streams.length);
      await sleep(Math.max(values.EVERY_MS - (Date.now() - began), 1));
    }
  }
  await closeAll(streams, checkStream);
}

/**
 * Sends one broadcast, and waits until it is everywhere, or for DELIVERY_SECONDS.
 *
 * @param {string} stage
 * @param {string} text
 * @param {number} wanted
 */
async function broadcast(stage, text, wanted) {
  const sent = new Broadcast(`${text} of ${RUN}`, stage, wanted);
  broadcasts.set(sent.text, sent);
  const everywhere = new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), values.DELIVERY_SECONDS * 1000);
    sent.complete = () => { clearTimeout(timer); resolve(undefined); };
  });
  due.add(wanted, sent.tags);
  const answer = await http.asyncRequest('POST', `${config.backendUrl}/event/broadcast?event=${EVENT}`, sent.text, { headers: config.headers, redirects: 0 });
  post.add(answer.timings.duration, sent.tags);
  if (answer.status !== 200 || answer.json('delivered') !== wanted) {
    short.add(1, sent.tags);
  }
  await everywhere;
  sent.over = true;
  arrived.add(wanted - sent.left, sent.tags);
  if (sent.left === 0) {
    last.add(sent.latest, sent.tags);
  }
}
