// @ts-check
// Storm: all streams but a share are dropped by the client at once and come back, first spread as clients spread their
// reconnects, then at once. The rest is held through it.
//
//   bin/soak run storm

import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import { plan, suite } from 'k6/x/soak';

import { streamConfig, teardown } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { checkStream, closeAll, openInGroups, sleep, Stream } from '../lib/stream.js';

const full = {
  CONNECTIONS: 5000,
  HELD_PERCENT: 10,
  STORM_SECONDS: 30,
  NOOP_INTERVAL: 1,
  LATE_MS: 1000,
  MAX_HELD_LATE: 0,
  MIN_RATE: 0,
  SLOW_MS: 1000,
  DIAL_MS: 1000,
};

const { name, values, parameters } = profile({
  full,
  smoke: { ...full, CONNECTIONS: 200, STORM_SECONDS: 5 },
});
/** Every so many-th stream is held. */
const every = Math.round(100 / values.HELD_PERCENT);
if (values.HELD_PERCENT < 1 || values.HELD_PERCENT > 50 || values.CONNECTIONS < 2 * every) {
  throw new Error(`HELD_PERCENT is ${values.HELD_PERCENT} of ${values.CONNECTIONS} streams: from 1 to 50 percent are held through the storms, and at least 2 streams.`);
}
if (values.STORM_SECONDS < 3) {
  throw new Error(`STORM_SECONDS is ${values.STORM_SECONDS}: clients that spread their reconnects are back after 1.5 seconds at the earliest, so write at least 3.`);
}

/** Streams that open in a second before the first storm, by all runners. */
const RAMP = 500;
const PACE = 50;

const settled = Math.ceil(values.CONNECTIONS / RAMP + 2 * values.NOOP_INTERVAL) + 1;
const stormed = values.CONNECTIONS - Math.ceil(values.CONNECTIONS / every);

/** @param {string} id @param {string} title @param {number} nth */
const storm = (id, title, nth) => ({
  name: id, title, kind: 'load', start: settled + nth * values.STORM_SECONDS, seconds: values.STORM_SECONDS, concurrency: values.CONNECTIONS, requests: stormed,
});
const stages = [storm('spread', 'reconnects spread', 0), storm('at-once', 'reconnects at once', 1)];

const seconds = settled + stages.length * values.STORM_SECONDS + 5;
const config = streamConfig({ connections: values.CONNECTIONS, seconds, noopInterval: values.NOOP_INTERVAL, lateMs: values.LATE_MS });
plan(config);
suite({ name: 'storm', profile: name, parameters: { ...parameters, EVERY: String(every) }, splitBy: ['scenario'], stages });

/** So many virtual users share the streams. */
const vus = Math.min(values.CONNECTIONS, 8 * config.runners);

export const options = {
  scenarios: { storm: { executor: 'per-vu-iterations', vus, iterations: 1, maxDuration: `${seconds + teardown(config)}s`, gracefulStop: '10s' } },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code', 'check'],
};

/** Streams that this client dropped, at the moment at which it did. */
const dropped = new Counter('storm_dropped');
/** From the moment at which a client was to dial until it did: what the load generator added. */
const waited = new Trend('storm_waited', true);
/** Dial to headers, of the attempt that brought the stream back. */
const connecting = new Trend('storm_connect', true);

class Stormed extends Stream {
  /** @param {number} n */
  constructor(n) {
    super({ ...config, reconnect: true }, `${config.prefix}${n}`);
    /** @type {Record<string, string> | null} of the storm that it is to come back from */
    this.tags = null;
    /** When its first dial after the drop is due, NaN once that was made. */
    this.due = NaN;
  }

  /** @param {Record<string, string>} tags @param {boolean} atOnce */
  storm(tags, atOnce) {
    if (this.source.drop(atOnce)) {
      this.tags = tags;
      dropped.add(1, tags);
    }
  }

  /** @param {any} event */
  handleEvent(event) {
    super.handleEvent(event);
    if (!this.tags) {
      return;
    }
    if (event.type === 'error') {
      this.due = event.reason === 'cut' ? event.timeStamp + event.retryMs : NaN;
      return;
    }
    const { connectMs } = this.source;
    connecting.add(connectMs, this.tags);
    if (!Number.isNaN(this.due)) {
      waited.add(Math.max(event.timeStamp - connectMs - this.due, 0), this.tags);
    }
    this.tags = null;
  }
}

export default async function () {
  const began = Date.now();
  const first = exec.scenario.iterationInTest;
  const target = Math.ceil((values.CONNECTIONS - first) / vus);
  /** @type {Stream[]} */
  const streams = [];
  await openInGroups(streams, { target, group: Math.ceil((RAMP * PACE) / 1000 / vus), pause: PACE }, (i) => {
    const n = first + i * vus;
    return n % every === 0 ? new Stream(config, `${config.prefix}${n}`) : new Stormed(n);
  });
  for (const stage of stages) {
    await sleep(Math.max(began + stage.start * 1000 - Date.now(), 0));
    const tags = { scenario: stage.name };
    for (const stream of streams) {
      if (stream instanceof Stormed) {
        stream.storm(tags, stage.name === 'at-once');
      }
    }
  }
  await sleep(values.STORM_SECONDS * 1000);
  // What those missed that were dropped the verdict knows: not every service can be resumed.
  await closeAll(streams, (stream) => checkStream(stream, stream instanceof Stormed || undefined));
}
