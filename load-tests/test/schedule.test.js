// @ts-check
// lib/schedule.js: k6's scenario and the stage in the shard are made from the same values.

import { Schedule, timeFor } from '../lib/schedule.js';
import { equal, run, thresholds } from './cases.js';

export const options = { thresholds };

const operations = [{ url: 'http://127.0.0.1:1/' }];

/** The schedule of a script. Its stages are declared in the init context. */
const declared = new Schedule();
declared.burst({ name: 'burst-9', operations, requests: 9, seconds: 15, timeout: 10 });
const script = declared.suite('burst', { name: 'smoke', parameters: { BURSTS: '9' } });

export default run({
  'a script has the scenarios of its schedule': () => {
    equal(script.scenarios, declared.scenarios);
    equal(script.ext?.soak.connections, 9);
    equal(script.systemTags, ['scenario']);
  },
  'requests at a rate': () => {
    const s = new Schedule();
    s.open({ name: 'rate-50', operations, rate: 50, seconds: 30, connections: 60, timeout: 10 });
    equal(s.stages, [{ kind: 'load', title: '50/s', name: 'rate-50', seconds: 30, rate: 50, connections: 60, patience: 10, start: 0 }]);
    equal(s.scenarios['rate-50'], { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: '55s', gracefulStop: '0s', startTime: '0s' });
    equal(Object.keys(s.calls), ['rate-50']);
  },
  'a constant number of concurrent requests': () => {
    const s = new Schedule();
    s.closed({ name: 'level-5', operations, concurrency: 5, requests: 200, seconds: 20, timeout: 2, target: 'cluster' });
    s.closed({ name: 'level-9', operations, concurrency: 9, seconds: 2.5, timeout: 2 });
    equal(s.stages, [
      { kind: 'load', title: '5 at a time', name: 'level-5', target: 'cluster', seconds: 20, concurrency: 5, requests: 200, start: 0 },
      { kind: 'load', title: '9 at a time', name: 'level-9', seconds: 2.5, concurrency: 9, requests: undefined, start: 21 },
    ]);
    equal(Object.values(s.scenarios).map((scenario) => /** @type {any} */ (scenario).maxDuration), ['29s', '12s']);
  },
  'simultaneous requests': () => {
    const s = new Schedule();
    s.burst({ name: 'burst-9', operations, requests: 9, seconds: 15, timeout: 10 });
    equal(s.stages, [{ kind: 'load', title: '9 at once', name: 'burst-9', seconds: 15, concurrency: 9, requests: 9, start: 0 }]);
    equal(s.scenarios['burst-9'], { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: '15s', gracefulStop: '0s', startTime: '0s' });
    s.burst({ name: 'short', operations, requests: 9, seconds: 3, timeout: 10 });
    equal(/** @type {any} */ (s.scenarios.short).maxDuration, '13s', 'the time limit of a burst that is shorter than its timeout');
  },
  'operations that are created at the start of the stage': () => {
    let calls = 0;
    new Schedule().burst({ name: 'upload', operations: () => { calls++; return operations; }, requests: 9, seconds: 15, timeout: 10 });
    equal(calls, 0);
  },
  'consecutive stages with a pause between them': () => {
    const s = new Schedule();
    s.open({ name: 'a', operations, rate: 1, seconds: 10, connections: 1, timeout: 1, kind: 'warmup', title: 'warm-up' });
    s.closed({ name: 'b', operations, concurrency: 1, requests: 1, seconds: 5, timeout: 1 });
    s.burst({ name: 'c', operations, requests: 1, seconds: 2, timeout: 1 });
    equal(s.stages.map(({ start }) => start), [0, 11, 17]);
    equal(Object.values(s.scenarios).map(({ startTime }) => startTime), ['0s', '11s', '17s']);
    equal(s.seconds, 20);
    equal([s.stages[0].kind, s.stages[0].title], ['warmup', 'warm-up']);
  },
  'a stage of 0 seconds is omitted': () => {
    const s = new Schedule();
    s.open({ name: 'warmup', operations, rate: 50, seconds: 0, connections: 60, timeout: 10 });
    s.closed({ name: 'warmup-2', operations, concurrency: 50, seconds: 0, timeout: 10 });
    equal([s.stages, s.scenarios, s.seconds], [[], {}, 0]);
  },
  'time for a number of requests': () => equal([timeFor(1000, 300), timeFor(0, 300), timeFor(1000, 1e-300)], [5, 1, 1e9]),
});
