// @ts-check
// The stages of a suite, one after the other: each is a k6 scenario and a stage in the shard,
// made from the same values.

import exec from 'k6/execution';
import { burst, closed, open } from 'k6/x/requests';
import { suite } from 'k6/x/soak';

/** @typedef {import('k6/x/soak').Stage} Stage */
/** @typedef {import('k6/x/requests').Operation[]} Operations */
/**
 * @typedef {{name: string, title?: string, kind?: string, target?: string, operations: Operations | (() => Operations), timeout: number}} Asked
 *   times in seconds; operations that are large are made when the stage begins */

/** The tags by which metrics are kept apart; the stage is k6's scenario. */
const SPLIT_BY = ['scenario', 'endpoint', 'server', 'code', 'waited'];

/** Tags of k6 that suites have a use for; each of the others costs time on every sample. */
const SYSTEM_TAGS = /** @type {import('k6/options').Options['systemTags']} */ (['scenario']);

/** Seconds between two stages, so that what one leaves behind does not fall into the next. */
const PAUSE = 1;

/**
 * @param {number} requests
 * @param {number} slowest requests per second that are to be had at least
 * @returns {number} seconds that a stage with so many gets, at most
 */
export function timeFor(requests, slowest) {
  return Math.ceil(requests / slowest) + 1;
}

/**
 * Says in the init context what a call of k6/x/requests would refuse only when the stage begins.
 *
 * @param {string} name of the stage
 * @param {number} timeout
 * @param {number} [requests]
 */
function check(name, timeout, requests) {
  if (!(timeout > 0)) {
    throw new Error(`TIMEOUT_SECONDS is ${timeout}: it must be over 0.`);
  }
  if (requests !== undefined && !(Number.isInteger(requests) && requests > 0)) {
    throw new Error(`The stage "${name}" has ${requests} requests: it must be a whole number over 0.`);
  }
}

/** @param {Operations | (() => Operations)} operations */
const made = (operations) => (typeof operations === 'function' ? operations() : operations);

/**
 * A stage ends by itself; what does not is ended after so many seconds.
 *
 * @param {number} seconds
 * @param {number} timeout
 */
const overrun = (seconds, timeout) => seconds + 2 * timeout + 5;

export class Schedule {
  /** @param {number} runners that share the requests */
  constructor(runners = 1) {
    this.runners = runners;
    /** @type {Record<string, import('k6/options').Scenario>} */
    this.scenarios = {};
    /** @type {Stage[]} */
    this.stages = [];
    this.seconds = 0;
    /** @type {Record<string, () => Promise<unknown>>} what a scenario does */
    this.calls = {};
  }

  /**
   * Requests at a constant rate, whether the service keeps up or not.
   *
   * @param {Asked & {rate: number, seconds: number, connections: number}} stage
   */
  open({ operations, timeout, rate, seconds, connections, ...stage }) {
    check(stage.name, timeout);
    if (seconds > 0) {
      this.#call({ title: `${rate}/s`, ...stage, seconds, rate, connections, patience: timeout }, overrun(seconds, timeout), () =>
        open({ operations: made(operations), timeout: timeout * 1000, rate, seconds, concurrency: connections }));
    }
  }

  /**
   * So many requests at a time: a new one when one is answered.
   *
   * @param {Asked & {concurrency: number, requests?: number, seconds: number}} stage `seconds` is the most that `requests` may take
   */
  closed({ operations, timeout, concurrency, requests, seconds, ...stage }) {
    check(stage.name, timeout, requests);
    if (seconds > 0) {
      this.#call({ title: `${concurrency} at a time`, ...stage, seconds, concurrency, requests }, overrun(seconds, timeout), () =>
        closed({ operations: made(operations), timeout: timeout * 1000, concurrency, requests, seconds }));
    }
  }

  /**
   * So many requests at once, each on a connection of its own that is open before: all are on the wire before an answer is read.
   *
   * @param {Asked & {requests: number, seconds: number}} stage `seconds` is the most that it may take
   */
  burst({ operations, timeout, requests, seconds, ...stage }) {
    check(stage.name, timeout, requests);
    // What is late must not be under way in the next burst, unless there is no time for an answer before.
    const most = seconds > timeout ? seconds : seconds + timeout;
    this.#call({ title: `${requests} at once`, ...stage, seconds, concurrency: requests, requests }, most, () =>
      burst({ operations: made(operations), timeout: timeout * 1000, requests }));
  }

  /**
   * Declares a suite of requests with these stages.
   *
   * @param {string} name
   * @param {{name: string, parameters: Record<string, string>}} profile
   * @returns {import('k6/options').Options} of its script
   */
  suite(name, { name: profile, parameters }) {
    suite({ name, profile, parameters, splitBy: SPLIT_BY, stages: this.stages });
    // For `soak run`, which sees by it whether the machines can hold so many.
    const most = Math.max(...this.stages.map(({ connections, concurrency }) => connections ?? concurrency ?? 0));
    return { scenarios: this.scenarios, systemTags: SYSTEM_TAGS, ext: { soak: { connections: most } } };
  }

  /**
   * Makes the stage whose scenario this is. One that throws makes nothing, and a run without it proves nothing.
   *
   * @returns {unknown}
   */
  run() {
    try {
      return this.calls[exec.scenario.name]();
    } catch (error) {
      return exec.test.abort(`${exec.scenario.name}: ${error}`);
    }
  }

  /**
   * Adds a stage: one call of k6/x/requests by each runner, which ends by itself.
   *
   * @param {{name: string, kind?: string, title: string, seconds: number} & Partial<Stage>} stage
   * @param {number} most seconds after which it is ended
   * @param {() => Promise<unknown>} call
   */
  #call(stage, most, call) {
    this.calls[stage.name] = call;
    this.stages.push({ kind: 'load', ...stage, start: this.seconds });
    this.scenarios[stage.name] = {
      executor: 'per-vu-iterations',
      vus: this.runners,
      iterations: 1,
      maxDuration: `${Math.ceil(most)}s`,
      gracefulStop: '0s',
      startTime: `${this.seconds}s`,
    };
    this.seconds += stage.seconds + PAUSE;
  }
}
