// @ts-check
// The stages of a suite, one after the other. Each stage becomes a k6 scenario and a stage in the shard.

import exec from 'k6/execution';
import { burst, closed, open } from 'k6/x/requests';
import { suite } from 'k6/x/soak';

/** @typedef {import('k6/x/soak').Stage} Stage */
/** @typedef {import('k6/x/requests').Operation[]} Operations */
/**
 * @typedef {{name: string, title?: string, kind?: string, target?: string, operations: Operations | (() => Operations), timeout: number}} StageArguments
 *   times in seconds; large operations are functions, which are called at the start of the stage */

/** The tags by which metrics are split. k6's tag `scenario` is the stage. */
const SPLIT_BY = ['scenario', 'endpoint', 'server', 'code', 'waited'];

/** Tags of k6 that suites use. Each further tag costs time on every sample. */
const SYSTEM_TAGS = /** @type {import('k6/options').Options['systemTags']} */ (['scenario']);

/** Seconds between two stages, so that late effects of a stage do not affect the next stage. */
const PAUSE = 1;

/**
 * Returns the maximum seconds of a stage with a number of requests: at most 1e9, because k6 cannot parse 1e+300s.
 *
 * @param {number} requests
 * @param {number} minRate in requests per second
 */
export function timeFor(requests, minRate) {
  return Math.min(Math.ceil(requests / minRate) + 1, 1e9);
}

/** @param {Operations | (() => Operations)} operations */
const resolve = (operations) => (typeof operations === 'function' ? operations() : operations);

/**
 * Returns the seconds after which k6 ends a stage that has not ended by itself.
 *
 * @param {number} seconds
 * @param {number} timeout
 */
const timeLimit = (seconds, timeout) => seconds + 2 * timeout + 5;

export class Schedule {
  /** @param {number} runners that share the requests */
  constructor(runners = 1) {
    this.runners = runners;
    /** @type {Record<string, import('k6/options').Scenario>} */
    this.scenarios = {};
    /** @type {Stage[]} */
    this.stages = [];
    this.seconds = 0;
    /** @type {Record<string, () => Promise<unknown>>} the function of each scenario */
    this.calls = {};
  }

  /**
   * Adds a stage with a constant rate of requests, even if the service is slower. It adds none for 0 seconds.
   *
   * @param {StageArguments & {rate: number, seconds: number, connections: number}} stage
   */
  open({ operations, timeout, rate, seconds, connections, ...stage }) {
    if (seconds > 0) {
      this.#call({ title: `${rate}/s`, ...stage, seconds, rate, connections, patience: timeout }, timeLimit(seconds, timeout), () =>
        open({ operations: resolve(operations), timeout: timeout * 1000, rate, seconds, concurrency: connections }));
    }
  }

  /**
   * Adds a stage with a constant number of concurrent requests. It adds none for 0 seconds.
   *
   * @param {StageArguments & {concurrency: number, requests?: number, seconds: number}} stage `seconds` is the time limit of `requests`
   */
  closed({ operations, timeout, concurrency, requests, seconds, ...stage }) {
    if (seconds > 0) {
      this.#call({ title: `${concurrency} at a time`, ...stage, seconds, concurrency, requests }, timeLimit(seconds, timeout), () =>
        closed({ operations: resolve(operations), timeout: timeout * 1000, concurrency, requests, seconds }));
    }
  }

  /**
   * Adds a stage with simultaneous requests, each on its own open connection. All requests of up to 64 KiB are sent
   * before a response to them is read.
   *
   * @param {StageArguments & {requests: number, seconds: number}} stage `seconds` is its planned length
   */
  burst({ operations, timeout, requests, seconds, ...stage }) {
    // With a timeout below `seconds`, all requests end within the stage. Otherwise they may overlap with the next one.
    const limit = seconds > timeout ? seconds : seconds + timeout;
    this.#call({ title: `${requests} at once`, ...stage, seconds, concurrency: requests, requests }, limit, () =>
      burst({ operations: resolve(operations), timeout: timeout * 1000, requests }));
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
    // `soak run` compares the number of connections with the limits of the machines.
    const maximum = Math.max(...this.stages.map(({ connections, concurrency }) => connections ?? concurrency ?? 0));
    return { scenarios: this.scenarios, systemTags: SYSTEM_TAGS, ext: { soak: { connections: maximum } } };
  }

  /**
   * Runs the stage of the current scenario. If it throws, the run is aborted, because the result would be incomplete.
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
   * Adds a stage: one call of k6/x/requests by each runner.
   *
   * @param {{name: string, kind?: string, title: string, seconds: number} & Partial<Stage>} stage
   * @param {number} limit seconds after which k6 ends the stage
   * @param {() => Promise<unknown>} call
   */
  #call(stage, limit, call) {
    this.calls[stage.name] = call;
    this.stages.push({ kind: 'load', ...stage, start: this.seconds });
    this.scenarios[stage.name] = {
      executor: 'per-vu-iterations',
      vus: this.runners,
      iterations: 1,
      maxDuration: `${Math.ceil(limit)}s`,
      gracefulStop: '0s',
      startTime: `${this.seconds}s`,
    };
    this.seconds += stage.seconds + PAUSE;
  }
}
