// @ts-check
// The configuration of a soak: environment variables in, one checked object out. A script
// that imports this stops in the init context, with one sentence, before any load is made.

import { DISCONNECT_LEAD, END_TIMEOUT_INTERVALS, END_TIMEOUT_SECONDS, ENDS_PER_SECOND, SETTINGS, TEARDOWN_SECONDS, USUAL_CONNECTIONS } from './plan.js';
import { authorization, NOOP, serviceSetting, setting, url } from './settings.js';

export { DISCONNECT_LEAD, USUAL_CONNECTIONS };

/**
 * Groups of samples that wait for k6's outputs at most (k6's `metricSamplesBufferSize`, usually 1000). k6 makes room for so many
 * twenty times a second, which was most of the garbage of a process that holds streams.
 */
export const SAMPLES_BUFFER = 100;

/** A stream that is silent for this many intervals is over, whatever TCP says of it. */
const SILENT_INTERVALS = 2.5;

/**
 * A shorter silence, in ms, cuts no stream of a suite, whose intervals are so short that a busy machine would cut some; and
 * none of a run that publishes, since nothing is published in its first and last seconds (k6/soak/publishing.go).
 */
export const LEAST_SILENCE = 10000;

/** How long the answer to a DELETE may take, in ms. */
export const DELETE_TIMEOUT = 10000;

/** @typedef {Required<import('k6/x/soak').Plan>} Plan */

/** @typedef {import('k6/x/soak').Service} Service */

/** The configuration of a script that speaks the original protocol itself, without `k6/x/soak`. */
export function noopConfig() {
  onlyNoops();
  return configOf({}, 0);
}

/** @typedef {ReturnType<typeof soakConfig>} SoakConfig */

/**
 * The configuration of streams that a suite opens and ends in its own way.
 *
 * @param {Service} service
 * @param {{connections: number, seconds: number, lateMs: number}} suite
 */
export function streamConfig(service, suite) {
  onlyNoops();
  const given = { ...suite, noopInterval: service.every, connectionsPerVU: 1, reconnect: false, topics: 0, publishRate: 0 };
  return { ...configOf(given, LEAST_SILENCE), service };
}

/** Stops a script that would hold noops where another service was asked for. */
function onlyNoops() {
  const name = serviceSetting();
  if (name !== NOOP) {
    throw new Error(`SERVICE is "${name}": this script holds streams of ${NOOP} only. load-tests/sse/connectionTest.js soaks other services.`);
  }
}

/**
 * Reads and checks the configuration. What the settings have to be to each other the plan checks in Go, the same for every way
 * a soak is started. The interval is the time between two messages of a stream: by what the run publishes, else by
 * message.every, else by heartbeat.every. intervalOf in internal/run/service.go finds the same.
 *
 * @param {Service} service what SERVICE describes (lib/service.js)
 */
export function soakConfig(service) {
  const topics = setting(SETTINGS.topics);
  const publishRate = setting(SETTINGS.publishRate);
  if (topics + publishRate > 0 && !service.published) {
    throw new Error(`TOPICS is ${topics} and PUBLISH_RATE ${publishRate}, but the description of ${service.name} has no publish: say there how a message is published, or leave both out.`);
  }
  if (topics + publishRate === 0 && service.published && !service.every) {
    throw new Error(`${service.name} brings what is published to it: say by TOPICS and PUBLISH_RATE to how many topics and how many messages per second, such as TOPICS=5 PUBLISH_RATE=2. Where others publish, give a description without publish.`);
  }
  const ofMessages = topics && publishRate ? topics / publishRate : service.every;
  const counted = service.numbered || ofMessages > 0;
  const noopInterval = ofMessages || (!counted && service.heartbeatEvery) || anyInterval();
  const silence = Math.max(ofMessages, service.heartbeatEvery) || noopInterval;
  const given = { topics, publishRate, noopInterval };
  // A server that ends each stream after some time, or with its token, wants its clients to come back.
  const reconnects = service.endBy === 'server' || setting(SETTINGS.tokenTtl) > 0;
  return Object.freeze({ ...configOf(reconnects ? { ...given, reconnect: true } : given, publishRate ? LEAST_SILENCE : 0, silence), service });
}

/** The interval, in s, where nobody knows how often something comes. No run is too short for it. */
function anyInterval() {
  return Math.min(setting(SETTINGS.noopInterval), (setting(SETTINGS.seconds) - DISCONNECT_LEAD) / 2);
}

/**
 * @param {Partial<Plan>} given what is not to be read from the environment
 * @param {number} leastSilence in ms
 * @param {number} [silence] how long nothing may come, in s; left out: the interval
 */
function configOf(given, leastSilence, silence = 0) {
  const read = Object.entries(SETTINGS).filter(([property]) => !(property in given)).map(([property, one]) => [property, setting(one)]);
  const plan = /** @type {Plan} */ ({ ...Object.fromEntries(read), ...given });
  return Object.freeze({
    ...plan,
    backendUrl: url('BACKEND_URL'),
    endTimeout: plan.endTimeout || Math.max(END_TIMEOUT_SECONDS, END_TIMEOUT_INTERVALS * plan.noopInterval),
    idleTimeout: Math.max(SILENT_INTERVALS * (silence || plan.noopInterval) * 1000, leastSilence),
    headers: authorization(),
  });
}

/**
 * How long a runner may take to end its streams, for the `maxDuration` of a scenario.
 *
 * @param {SoakConfig} config
 * @returns {number} seconds
 */
export function teardown(config) {
  const answers = Math.ceil(config.connections / config.runners / ENDS_PER_SECOND);
  return Math.ceil(TEARDOWN_SECONDS + config.endTimeout) + answers;
}

/**
 * Holds the options of a bare `k6 run` against the plan. An iteration that k6 ends before its streams
 * have ended makes no check, and a run without checks passes k6's thresholds.
 *
 * @param {SoakConfig} config
 * @param {Record<string, any>} scenarios of `exec.test.options`
 */
export function heedOptions(config, scenarios) {
  const needed = config.seconds - DISCONNECT_LEAD + config.endTimeout + DELETE_TIMEOUT / 1000;
  for (const [name, scenario] of Object.entries(scenarios)) {
    const users = scenario.vus ?? 1;
    const iterations = scenario.executor === 'per-vu-iterations' ? users * (scenario.iterations ?? 1) : scenario.iterations;
    if (!/^(per-vu|shared)-iterations$/.test(scenario.executor)) {
      throw new Error(`the scenario ${name} is ${scenario.executor}: a soak needs a number of iterations, one for each virtual user, such as --vus 600 --iterations 600.`);
    }
    if (iterations > users) {
      throw new Error(`the scenario ${name} has ${iterations} iterations for ${users} virtual users: each holds its streams for the whole run, so write --vus ${iterations}.`);
    }
    if (config.connections > 0 && iterations * config.connectionsPerVU < config.connections) {
      throw new Error(`CONNECTIONS is ${config.connections}, but the options of k6 (flags, K6_VUS, K6_ITERATIONS or a configuration file) hold only ${iterations * config.connectionsPerVU}: leave CONNECTIONS out, or the option.`);
    }
    const given = secondsOf(scenario.maxDuration ?? '10m') + secondsOf(scenario.gracefulStop ?? '30s');
    if (given < needed) {
      throw new Error(`the scenario ${name} ends after ${given} s, but SECONDS=${config.seconds} and the end of the streams (END_TIMEOUT=${config.endTimeout}) take up to ${needed}: write --duration ${Math.ceil(config.seconds + Math.max(needed - config.seconds - 30, 0))}s.`);
    }
  }
}

/**
 * @param {string} duration as k6 writes it, such as `1h0m30s` or `500ms`
 * @returns {number}
 */
function secondsOf(duration) {
  /** @type {Record<string, number>} */
  const units = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 };
  let sum = 0;
  for (const [, value, unit] of duration.matchAll(/([0-9.]+)(ms|[smhd])/g)) {
    sum += Number(value) * units[unit];
  }
  return sum;
}

/**
 * Stops a script whose parts have to know of each other: runners do not.
 *
 * @param {string} suite
 */
export function oneRunner(suite) {
  const runners = setting(SETTINGS.runners);
  if (runners !== 1) {
    throw new Error(`RUNNERS is ${runners}: ${suite} needs one runner, which knows of all connections.`);
  }
}
