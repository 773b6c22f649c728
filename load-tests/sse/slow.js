// @ts-check
// Slow: some clients read slowly or not at all, while the service sends large messages to all clients. The suite checks
// whether the other clients receive them in time, whether the service closes slow clients, and how much memory it uses.
// The run publishes the messages, or requests broadcasts of the noop protocol.
//
//   bin/soak run slow --slow-percent 20 --slow-kb 1
//   bin/soak run slow --service nchan --backend-url http://HOST --topics 1 --publish-rate 4 --gauge pid:1234
//   bin/soak run slow --service prices.js --backend-url http://HOST --gauge pid:1234 --fill-kb 1024

import { hold, profile, suite } from 'k6/x/soak';

import { DISCONNECT_LEAD, NOOP, requireOneRunner } from '../lib/config.js';
import { everyOf, rampOf, settleTime, sharedConfig, sharedOptions, shareOf } from '../lib/share.js';

const full = { SLOW_PERCENT: 10, SLOW_KB: 0, AFTER_SECONDS: 20, MESSAGE_RATE: 4, FILL_KB: 4096, MAX_OPEN_LATE: 0, MAX_GROWTH: 200, CUT_SLOW: -1, GAUGE: '' };

const { name, values, parameters } = profile('slow', {
  full,
  smoke: { ...full, SLOW_PERCENT: 20, AFTER_SECONDS: 3, MESSAGE_RATE: 10 },
});
const shared = sharedConfig();
requireOneRunner('slow', shared.config.runners);
const { service, config } = shared;
/** Whether the run publishes messages or the service sends its own. With noop, the run requests broadcasts instead. */
const publishes = service.name !== NOOP;
/** Whether the clients share a feed, whose messages fill the buffers. */
const feeds = publishes && service.shared;
const every = everyOf('SLOW_PERCENT', values.SLOW_PERCENT, config.connections);
const kb = config.messageKB;

/** Messages per second and stream. */
const rate = publishes ? config.publishRate / config.topics || 0 : values.MESSAGE_RATE;

/** Two more seconds for measuring the memory of the service before the slow phase. */
const settle = settleTime(config) + 2;
const SLOW = config.seconds - DISCONNECT_LEAD - settle - values.AFTER_SECONDS;
const MIN_SECONDS = 2;
if (SLOW < MIN_SECONDS || values.AFTER_SECONDS < MIN_SECONDS) {
  throw new Error(`AFTER_SECONDS must be at least ${MIN_SECONDS}, and SECONDS at least ${settle + MIN_SECONDS + DISCONNECT_LEAD} more, because ${config.connections} streams need ${settle} seconds to open and memory is read once a second, got ${values.AFTER_SECONDS} and ${config.seconds}`);
}
if (publishes && !feeds && !service.published) {
  throw new Error(`the description of ${service.name} must have publish, because messages fill the buffers of clients that do not read; add publish`);
}
if (publishes && !feeds && kb > 0 && !service.padded) {
  throw new Error(`MESSAGE_KB is ${kb}, but publish.body of the description of ${service.name} has no {padding}; add it where the service accepts any text, such as "pad":"{padding}"`);
}
if (!feeds && (!(kb >= 1 && rate > 0) || (kb * rate - values.SLOW_KB) * SLOW < values.FILL_KB)) {
  throw new Error(`a slow client would fall behind by less than ${values.FILL_KB} KB (FILL_KB) in ${SLOW} seconds: the service sends messages of ${kb} KB (MESSAGE_KB) at ${rate} per second, and the client reads ${values.SLOW_KB} KB (SLOW_KB) per second; raise ${publishes ? 'PUBLISH_RATE' : 'MESSAGE_RATE'} or SECONDS`);
}
/** Seconds after which the service may end any stream. */
const lifetime = Math.min(service.lifetime || Infinity, config.tokenTtl || Infinity);
if (publishes && lifetime < config.seconds - DISCONNECT_LEAD) {
  throw new Error(`SECONDS must be at most ${Math.floor(lifetime) + DISCONNECT_LEAD}, because ${service.name} may end its streams after ${lifetime} seconds (end.lifetime, TOKEN_TTL) for a reason other than slowness, got ${config.seconds}; lower SECONDS, or raise the lifetime`);
}

const stage = { name: 'slow', title: 'slow', kind: 'load', start: settle, seconds: SLOW, concurrency: config.connections, requests: Math.ceil(config.connections / every) };
suite({
  name: 'slow', profile: name, splitBy: ['scenario'], stages: [stage],
  parameters: { ...parameters, MESSAGE_KB: String(kb), MESSAGE_RATE: String(rate), SLOW_SECONDS: String(SLOW), EVERY: String(every) },
});

export const options = sharedOptions('slow', shared, 1);

export default async function () {
  const { streams, selected } = shareOf(config, every, 1);
  await hold(service, {
    ...config, streams, ramp: rampOf(config), openFor: (settle + SLOW + values.AFTER_SECONDS) * 1000,
    ...(!publishes && { broadcast: { url: `${config.backendUrl}/event/broadcast?event=filler`, headers: config.headers, event: 'filler', kb } }),
    phases: [{
      name: stage.name, at: settle * 1000, action: 'slow', streams: selected,
      for: SLOW * 1000, after: values.AFTER_SECONDS * 1000, bytesPerSecond: values.SLOW_KB * 1024,
      messageKB: feeds ? 0 : kb, fillKB: values.FILL_KB, broadcastsPerSecond: rate,
    }],
  });
}
