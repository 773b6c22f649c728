// @ts-check
// Vanish: some clients disappear without a FIN, and the service must notice the loss. Its gauge of open streams, which
// `soak run` reads, shows when it notices. The other streams stay open.
//
//   bin/soak run vanish --backend-url http://HOST --gauge hub_streams
//   bin/soak run vanish --service mercure --backend-url http://HOST --topics 10 --publish-rate 10 --gauge hub_subscribers

import { hold, profile, suite } from 'k6/x/soak';

import { DISCONNECT_LEAD, NOOP } from '../lib/config.js';
import { everyOf, rampOf, settleTime, sharedConfig, sharedOptions, shareOf } from '../lib/share.js';

const defaults = { VANISH_PERCENT: 20, STEADY_SECONDS: 2, MAX_OPEN_LATE: 0, GAUGE: '' };
const { name, values, parameters } = profile('vanish', { full: defaults, smoke: defaults });

const shared = sharedConfig();
const { service, config } = shared;
const every = everyOf('VANISH_PERCENT', values.VANISH_PERCENT, config.connections);

/** Seconds until all streams are open, have received messages and were counted. The rest of the run is for the service to notice the loss. */
const settle = settleTime(config) + values.STEADY_SECONDS;
const NOTICE = config.seconds - DISCONNECT_LEAD - settle;
const MIN_SECONDS = 2;
/** Seconds for the last reading of the gauge. The other streams stay open until then. */
const READING = 1;
if (NOTICE < MIN_SECONDS) {
  throw new Error(`SECONDS must be at least ${settle + MIN_SECONDS + DISCONNECT_LEAD}, because ${config.connections} streams need ${settle} seconds to open and to be counted (STEADY_SECONDS), and the gauge is read once a second, got ${config.seconds}`);
}
if (service.name !== NOOP && !values.GAUGE) {
  throw new Error(`${service.name} needs a gauge of its open streams, which shows when it notices a loss; set GAUGE to a metric of BACKEND_URL/metrics, or to PromQL with PROMETHEUS_URL`);
}
if (/^pid:/.test(values.GAUGE)) {
  throw new Error(`GAUGE must count the open streams, got ${values.GAUGE}, which is memory; set it to a metric of BACKEND_URL/metrics, or to PromQL with PROMETHEUS_URL`);
}
const stage = { name: 'vanished', title: 'vanished', kind: 'load', start: settle, seconds: NOTICE, concurrency: config.connections, requests: Math.ceil(config.connections / every) };
suite({
  name: 'vanish', profile: name, splitBy: ['scenario'], stages: [stage],
  parameters: { ...parameters, EVERY: String(every), NOTICE_SECONDS: String(NOTICE) },
});

export const options = sharedOptions('vanish', shared);

export default async function () {
  const { streams, selected } = shareOf(config, every);
  await hold(service, {
    ...config, streams, ramp: rampOf(config), openFor: (settle + NOTICE + READING) * 1000,
    phases: [{ name: stage.name, at: settle * 1000, action: 'vanish', streams: selected }],
  });
}
