// @ts-check
// lib/schedule.js: k6's scenario and the stage in the shard are made from the same values.

import { Schedule, timeFor } from '../lib/schedule.js';
import { equal, run, thresholds } from './cases.js';

export const options = { thresholds };

/** Of a script, whose stages are declared in the init context. */
const declared = new Schedule();
declared.atOnce({ name: 'burst-9', requests: 9, seconds: 15, timeout: 10 });
const script = declared.suite('burst', { name: 'smoke', parameters: { BURSTS: '9' } });

export default run({
  'a script has the scenarios of its schedule': () => {
    equal(script.scenarios, declared.scenarios);
    equal(script.systemTags, ['scenario', 'status', 'error_code', 'check']);
  },
  'requests at a rate': () => {
    const s = new Schedule();
    s.arrivals({ name: 'rate-50', rate: 50, seconds: 30, maxVUs: 60, timeout: 10 });
    equal(s.stages, [{ name: 'rate-50', title: '50/s', kind: 'load', seconds: 30, rate: 50, maxVUs: 60, start: 0 }]);
    equal(s.scenarios['rate-50'], {
      executor: 'constant-arrival-rate', rate: 50, timeUnit: '1s', duration: '30s', preAllocatedVUs: 60, maxVUs: 60,
      gracefulStop: '10s', exec: 'default', startTime: '0s',
    });
  },
  'requests shared out': () => {
    const s = new Schedule();
    s.shared({ name: 'level-5', concurrency: 5, requests: 200, seconds: 20, timeout: 2, target: 'cluster', env: { TARGET: 'cluster' } });
    equal(s.stages, [{ name: 'level-5', title: '5 at a time', kind: 'load', target: 'cluster', seconds: 20, concurrency: 5, requests: 200, maxVUs: 5, start: 0 }]);
    equal(s.scenarios['level-5'], {
      executor: 'shared-iterations', vus: 5, iterations: 200, maxDuration: '20s', gracefulStop: '2s', exec: 'default',
      env: { TARGET: 'cluster' }, startTime: '0s',
    });
  },
  'requests at once': () => {
    const s = new Schedule();
    s.atOnce({ name: 'burst-9', requests: 9, seconds: 15, timeout: 10 });
    equal(s.stages, [{ name: 'burst-9', title: '9 at once', kind: 'load', seconds: 15, concurrency: 9, requests: 9, maxVUs: 9, start: 0 }]);
    equal(s.scenarios['burst-9'], {
      executor: 'per-vu-iterations', vus: 9, iterations: 1, maxDuration: '15s', gracefulStop: '0s', exec: 'default', startTime: '0s',
    });
    s.atOnce({ name: 'short', requests: 9, seconds: 3, timeout: 10 });
    equal(/** @type {any} */ (s.scenarios.short).gracefulStop, '10s', 'the time to end of a burst shorter than its timeout');
  },
  'one stage after the other, with a pause between': () => {
    const s = new Schedule();
    s.arrivals({ name: 'a', rate: 1, seconds: 10, maxVUs: 1, timeout: 1, kind: 'warmup', title: 'warm-up', exec: 'warm' });
    s.shared({ name: 'b', concurrency: 1, requests: 1, seconds: 5, timeout: 1 });
    s.atOnce({ name: 'c', requests: 1, seconds: 2, timeout: 1 });
    equal(s.stages.map(({ start }) => start), [0, 11, 17]);
    equal(Object.values(s.scenarios).map(({ startTime }) => startTime), ['0s', '11s', '17s']);
    equal(s.seconds, 20);
    equal([s.stages[0].kind, s.stages[0].title, s.scenarios.a.exec], ['warmup', 'warm-up', 'warm']);
  },
  'a stage of no seconds is left out': () => {
    const s = new Schedule();
    s.arrivals({ name: 'warmup', rate: 50, seconds: 0, maxVUs: 60, timeout: 10 });
    equal([s.stages, s.scenarios, s.seconds], [[], {}, 0]);
  },
  'time for a number of requests': () => equal([timeFor(1000, 300), timeFor(0, 300)], [5, 1]),
});
