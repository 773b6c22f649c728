// @ts-check
// Storm: the clients drop most streams at the same time and reconnect, first spread by their random delays, then all
// at once. The other streams stay open.
//
//   bin/soak run storm
//   bin/soak run storm --service nchan --backend-url http://HOST --topics 100 --publish-rate 100

import { hold, profile, suite } from 'k6/x/soak';

import { DISCONNECT_LEAD } from '../lib/config.js';
import { everyOf, rampOf, settleTime, sharedConfig, sharedOptions, shareOf } from '../lib/share.js';

const defaults = { OPEN_PERCENT: 10, MIN_RATE: 0, SLOW_MS: 1000, DIAL_MS: 1000, MAX_OPEN_LATE: 0 };
const { name, values, parameters } = profile('storm', { full: defaults, smoke: defaults });

const shared = sharedConfig();
const { service, config } = shared;

/** Of all streams, every n-th stays open. */
const every = everyOf('OPEN_PERCENT', values.OPEN_PERCENT, config.connections);

/** Seconds from the first stream to the first message that the run publishes (publishDelay in k6/soak/publishing.go). */
const PUBLISH_DELAY = 2;
/** Seconds until all streams are open and have received messages, and thus ids to resume from. Two storms follow. */
const settle = settleTime(config) + (config.publishRate > 0 ? PUBLISH_DELAY : 0);
const STORM = Math.floor((config.seconds - DISCONNECT_LEAD - settle) / 2);
const MIN_SECONDS = 3;
if (STORM < MIN_SECONDS) {
  throw new Error(`SECONDS must be at least ${settle + 2 * MIN_SECONDS + DISCONNECT_LEAD}, because ${config.connections} streams need ${settle} seconds to open, and each of two storms ${MIN_SECONDS}, got ${config.seconds}`);
}
const dropped = config.connections - Math.ceil(config.connections / every);

/** @param {string} id @param {string} title @param {number} nth */
const storm = (id, title, nth) => ({
  name: id, title, kind: 'load', start: settle + nth * STORM, seconds: STORM, concurrency: config.connections, requests: dropped,
});
const stages = [storm('spread', 'reconnects spread', 0), storm('at-once', 'reconnects at once', 1)];

suite({ name: 'storm', profile: name, parameters: { ...parameters, EVERY: String(every) }, splitBy: ['scenario'], stages });

export const options = sharedOptions('storm', shared);

export default async function () {
  const { streams, others } = shareOf(config, every);
  const [spread, atOnce] = stages;
  await hold(service, {
    ...config, streams, ramp: rampOf(config), openFor: (config.seconds - DISCONNECT_LEAD) * 1000,
    phases: [
      { name: spread.name, at: spread.start * 1000, action: 'drop', streams: others },
      { name: atOnce.name, at: atOnce.start * 1000, action: 'dropAtOnce', streams: others },
    ],
  });
}
