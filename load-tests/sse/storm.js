// @ts-check
// Storm: all streams but a share are dropped by the client at once and come back, first spread as clients spread their
// reconnects, then at once. The rest is held through it.
//
//   bin/soak run storm
//   bin/soak run storm --service nchan --backend-url http://HOST --topics 100 --publish-rate 100

import { Counter, Trend } from 'k6/metrics';
import { plan, suite } from 'k6/x/soak';

import { DISCONNECT_LEAD } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { whole } from '../lib/settings.js';
import { everyOf, openShare, settledAfter, sharedConfig, sharedOptions } from '../lib/share.js';
import { checkStream, closeAll, sleep, Stream } from '../lib/stream.js';

const usual = { HELD_PERCENT: 10, MIN_RATE: 0, SLOW_MS: 1000, DIAL_MS: 1000 };
const { name, values, parameters } = profile({ full: usual, smoke: usual });

const shared = sharedConfig();
const { config } = shared;

/** Every so many-th stream is held. */
const every = everyOf('HELD_PERCENT', values.HELD_PERCENT, config.connections);

/** Seconds until all streams are open and had their messages; the rest of the run are two storms. */
const settled = settledAfter(config);
const STORM = Math.floor((config.seconds - DISCONNECT_LEAD - settled) / 2);
const LEAST = 3;
if (STORM < LEAST) {
  throw new Error(`SECONDS is ${config.seconds}: ${config.connections} streams take ${settled} seconds to open, and clients that spread their reconnects are back after 2 seconds at the latest, if they are let in, so write at least ${settled + 2 * LEAST + DISCONNECT_LEAD}.`);
}
const stormed = config.connections - Math.ceil(config.connections / every);

/** @param {string} id @param {string} title @param {number} nth */
const storm = (id, title, nth) => ({
  name: id, title, kind: 'load', start: settled + nth * STORM, seconds: STORM, concurrency: config.connections, requests: stormed,
});
const stages = [storm('spread', 'reconnects spread', 0), storm('at-once', 'reconnects at once', 1)];

plan(config);
suite({ name: 'storm', profile: name, parameters: { ...parameters, MAX_HELD_LATE: String(whole('MAX_HELD_LATE', 0)), EVERY: String(every) }, splitBy: ['scenario'], stages });

export const options = sharedOptions('storm', shared);

/** Streams that this client dropped, at the moment at which it did. */
const dropped = new Counter('storm_dropped');
/** From the moment at which a client was to dial until it did: what the load generator added. */
const waited = new Trend('storm_waited', true);
/** Dial to headers, of the attempt that brought the stream back. */
const connecting = new Trend('storm_connect', true);

class Stormed extends Stream {
  /** @param {number} n */
  constructor(n) {
    super({ ...config, reconnect: true, held: false }, `${config.prefix}${n}`, n);
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
  const streams = await openShare(config, (n) => (n % every === 0 ? new Stream(config, `${config.prefix}${n}`, n) : new Stormed(n)));
  for (const stage of stages) {
    await sleep(Math.max(began + stage.start * 1000 - Date.now(), 0));
    const tags = { scenario: stage.name };
    for (const stream of streams) {
      if (stream instanceof Stormed) {
        stream.storm(tags, stage.name === 'at-once');
      }
    }
  }
  await sleep(Math.max(began + (config.seconds - DISCONNECT_LEAD) * 1000 - Date.now(), 0));
  // What those missed that were dropped the verdict knows: not every service can be resumed.
  await closeAll(streams, (stream) => checkStream(stream, stream instanceof Stormed || undefined));
}
