// @ts-check
// The stages of a suite, one after the other: each is a k6 scenario and a stage in the shard,
// made from the same values.

import { suite } from 'k6/x/soak';

import { SPLIT_BY, SYSTEM_TAGS } from './record.js';

/** @typedef {import('k6/x/soak').Stage} Stage */

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
  }

  /**
   * Requests at a constant rate, whether the service keeps up or not.
   *
   * @param {{name: string, title?: string, kind?: string, rate: number, seconds: number, maxVUs: number, timeout: number, exec?: string}} stage
   */
  arrivals(stage) {
    if (stage.seconds === 0) {
      return;
    }
    this.#add(
      { name: stage.name, title: stage.title ?? `${stage.rate}/s`, kind: stage.kind ?? 'load', seconds: stage.seconds, rate: stage.rate, maxVUs: stage.maxVUs },
      {
        executor: 'constant-arrival-rate',
        rate: stage.rate,
        timeUnit: '1s',
        duration: `${stage.seconds}s`,
        preAllocatedVUs: stage.maxVUs,
        maxVUs: stage.maxVUs,
        gracefulStop: `${stage.timeout}s`,
        exec: stage.exec ?? 'default',
      },
    );
  }

  /**
   * Requests that are shared out among so many at a time: a new one when one is answered.
   *
   * @param {{name: string, title?: string, kind?: string, target?: string, concurrency: number, requests: number, seconds: number, timeout: number, exec?: string, env?: Record<string, string>}} stage
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
        env: stage.env ?? {},
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
    return { scenarios: this.scenarios, systemTags: SYSTEM_TAGS };
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
