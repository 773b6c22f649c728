// @ts-check
// Vanish: some clients disappear without a FIN, and the service has to notice by itself. Its own gauge of open streams says
// when it does; `soak run` watches it. The other streams are held.
//
//   bin/soak run vanish --gauge hub_subscribers

import { Counter } from 'k6/metrics';
import { plan, suite } from 'k6/x/soak';

import { streamConfig, teardown } from '../lib/config.js';
import { profile } from '../lib/profile.js';
import { number } from '../lib/settings.js';
import { everyOf, openShare, settledAfter, usersOf } from '../lib/share.js';
import { checkStream, closeAll, sleep, Stream } from '../lib/stream.js';

const full = {
  CONNECTIONS: 1000,
  VANISH_PERCENT: 20,
  NOTICE_SECONDS: 120,
  NOOP_INTERVAL: 1,
  LATE_MS: 1000,
};

const { name, values, parameters } = profile({
  full,
  smoke: { ...full, CONNECTIONS: 100, NOTICE_SECONDS: 30 },
});
const every = everyOf('VANISH_PERCENT', values.VANISH_PERCENT, values.CONNECTIONS);
if (values.NOTICE_SECONDS < 2) {
  throw new Error(`NOTICE_SECONDS is ${values.NOTICE_SECONDS}: the gauge is read once a second, so write at least 2.`);
}

const settled = settledAfter({ connections: values.CONNECTIONS, noopInterval: values.NOOP_INTERVAL }) + 2;
const stage = { name: 'vanished', title: 'vanished', kind: 'load', start: settled, seconds: values.NOTICE_SECONDS, concurrency: values.CONNECTIONS, requests: Math.ceil(values.CONNECTIONS / every) };
const seconds = settled + values.NOTICE_SECONDS + 5;
const config = streamConfig({ connections: values.CONNECTIONS, seconds, noopInterval: values.NOOP_INTERVAL, lateMs: values.LATE_MS });
plan(config);
suite({ name: 'vanish', profile: name, parameters: { ...parameters, MAX_HELD_LATE: String(number('MAX_HELD_LATE', 0)), EVERY: String(every), GAUGE: __ENV.GAUGE || '' }, splitBy: ['scenario'], stages: [stage] });

export const options = {
  scenarios: { vanish: { executor: 'per-vu-iterations', vus: usersOf(config), iterations: 1, maxDuration: `${seconds + teardown(config)}s`, gracefulStop: '10s' } },
  batchPerHost: 0,
  systemTags: ['scenario', 'status', 'error_code', 'check'],
};

const vanished = new Counter('vanish_vanished');

export default async function () {
  const began = Date.now();
  const streams = await openShare(config, (n) => new Stream(config, `${config.prefix}${n}`, n));
  await sleep(Math.max(began + settled * 1000 - Date.now(), 0));
  const held = [];
  for (const stream of streams) {
    if (stream.n % every !== 0) {
      held.push(stream);
    } else if (stream.source.vanish()) {
      vanished.add(1, { scenario: stage.name });
    }
  }
  await sleep(values.NOTICE_SECONDS * 1000);
  await closeAll(held, checkStream);
}
