// @ts-check
// The soak: opens every stream, keeps it open for SECONDS − 5, requests its end and counts every noop, in Go
// (k6/x/soak), without JavaScript per stream or noop. With SERVICE, a module of load-tests/services describes the
// streams, their messages and their end.
//
//   bin/k6 run load-tests/sse/connectionTest.js --vus 600 --iterations 600 --duration 60m \
//     --env BACKEND_URL=http://HOST --env NOOP_INTERVAL=15 --env SECONDS=3600 --env PREFIX=laptop-a-

import exec from 'k6/execution';
import { hold } from 'k6/x/soak';

import { DISCONNECT_LEAD, checkOptions, SAMPLES_BUFFER, soakConfig, DEFAULT_CONNECTIONS } from '../lib/config.js';
import { loadService } from '../lib/service.js';

const { service, description, customToken } = loadService();
const config = soakConfig(service);

/** Milliseconds after which the end of each stream is requested. */
const OPEN_FOR = (config.seconds - DISCONNECT_LEAD) * 1000;

const connections = config.connections || DEFAULT_CONNECTIONS;
const vus = Math.ceil(connections / config.connectionsPerVU);

export const options = {
  scenarios: {
    soak: {
      executor: 'per-vu-iterations',
      vus,
      iterations: 1,
      maxDuration: `${config.seconds + config.teardown}s`,
      gracefulStop: '10s',
    },
  },
  // A rate of 1 stays valid when the run is split over runners. The total of a count would not.
  thresholds: { checks: ['rate==1'] },
  batchPerHost: 0,
  metricSamplesBufferSize: SAMPLES_BUFFER,
  summaryTrendStats: ['min', 'med', 'p(95)', 'p(99)', 'max'],
  ext: { soak: { service: description, customToken } }, // `soak run` reads it with `k6 inspect`
};

export function setup() {
  checkOptions(config, exec.test.options.scenarios ?? {});
}

export default async function () {
  const from = exec.scenario.iterationInTest * config.connectionsPerVU;
  const to = Math.min(from + config.connectionsPerVU, config.connections || Infinity);
  try {
    await hold(service, { ...config, from, to, openFor: OPEN_FOR });
  } catch (e) {
    // k6 only logs exceptions, and a run without streams makes no checks, so it would pass.
    exec.test.abort(e instanceof Error ? e.message : String(e));
  }
}
