// @ts-check
// The stages of a suite, one after the other: each is a k6 scenario and a stage in the shard,
// made from the same values.

import exec from 'k6/execution';
import { closed, open } from 'k6/x/requests';
import { suite } from 'k6/x/soak';

import { SPLIT_BY, SYSTEM_TAGS } from './record.js';

/** @typedef {import('k6/x/soak').Stage} Stage */
/** @typedef {import('k6/x/requests').Operation[]} Operations */
/** @typedef {{name: string, title?: string, kind?: string, target?: string, operations: Operations, timeout: number}} Asked times in seconds */

const runners = Number(__ENV.RUNNERS || 1);

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

export class Schedule {
  constructor() {
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
    if (seconds > 0) {
      this.#call({ title: `${rate}/s`, ...stage, seconds, rate, maxVUs: connections }, timeout, () =>
        open({ operations, timeout: timeout * 1000, rate, seconds, concurrency: connections }));
    }
  }

  /**
   * So many requests at a time: a new one when one is answered.
   *
   * @param {Asked & {concurrency: number, requests?: number, seconds: number}} stage `seconds` is the most that `requests` may take
   */
  closed({ operations, timeout, concurrency, requests, seconds, ...stage }) {
    if (seconds > 0) {
      this.#call({ title: `${concurrency} at a time`, ...stage, seconds, concurrency, requests, maxVUs: concurrency }, timeout, () =>
        closed({ operations, timeout: timeout * 1000, concurrency, requests, seconds }));
    }
  }

  /**
   * Requests that are shared out among so many at a time: a new one when one is answered.
   *
   * @param {{name: string, title?: string, kind?: string, target?: string, concurrency: number, requests: number, seconds: number, timeout: number, exec?: string}} stage
   *   `seconds` is the most that it may take
   */
  shared(stage) {
    this.#add(
      { name: stage.name, title: stage.title ?? `${stage.concurrency} at a time`, kind: stage.kind ?? 'load', target: stage.target ?? '', seconds: stage.seconds, concurrency: stage.concurrency, requests: stage.requests, maxVUs: stage.concurrency },
      {
        executor: 'shared-iterations',
        vus: stage.concurrency,
        iterations: stage.requests,
        maxDuration: `${stage.seconds}s`,
        gracefulStop: `${stage.timeout}s`,
        exec: stage.exec ?? 'default',
      },
    );
  }

  /**
   * So many requests at once, one from each virtual user.
   *
   * @param {{name: string, title?: string, kind?: string, requests: number, seconds: number, timeout: number, exec?: string}} stage
   *   `seconds` is the most that it may take
   */
  atOnce(stage) {
    this.#add(
      { name: stage.name, title: stage.title ?? `${stage.requests} at once`, kind: stage.kind ?? 'load', seconds: stage.seconds, concurrency: stage.requests, requests: stage.requests, maxVUs: stage.requests },
      {
        executor: 'per-vu-iterations',
        vus: stage.requests,
        iterations: 1,
        maxDuration: `${stage.seconds}s`,
        // A request that began ends by its timeout; virtual users that linger add to the next burst's.
        gracefulStop: stage.seconds > stage.timeout ? '0s' : `${stage.timeout}s`,
        exec: stage.exec ?? 'default',
      },
    );
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
    const connections = Math.max(...this.stages.map(({ maxVUs }) => maxVUs ?? 0));
    return { scenarios: this.scenarios, systemTags: SYSTEM_TAGS, ext: { soak: { connections } } };
  }

  /** What a virtual user does in the scenario that it is in. */
  run() {
    return this.calls[exec.scenario.name]();
  }

  /**
   * Adds a stage that is one call of k6/x/requests: one virtual user of each runner makes it, and it ends by itself.
   *
   * @param {{name: string, kind?: string, title: string, seconds: number} & Partial<Stage>} stage
   * @param {number} timeout
   * @param {() => Promise<unknown>} call
   */
  #call(stage, timeout, call) {
    this.calls[stage.name] = call;
    this.#add({ kind: 'load', ...stage }, {
      executor: 'per-vu-iterations',
      vus: runners,
      iterations: 1,
      maxDuration: `${Math.ceil(stage.seconds + 2 * timeout) + 5}s`,
      gracefulStop: '0s',
    });
  }

  /**
   * @param {Omit<Stage, 'start'> & {seconds: number}} stage
   * @param {any} scenario
   */
  #add(stage, scenario) {
    this.stages.push({ ...stage, start: this.seconds });
    this.scenarios[stage.name] = { ...scenario, startTime: `${this.seconds}s` };
    this.seconds += stage.seconds + PAUSE;
  }
}
