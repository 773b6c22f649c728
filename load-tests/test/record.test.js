// @ts-check
// lib/record.js and lib/operations.js: what a request came to, as measured. The thresholds read the metrics.

import { ask, askNext, OPERATIONS } from '../lib/operations.js';
import { record, sent } from '../lib/record.js';
import { equal, run, throws, thresholds as cases } from './cases.js';

const base = __ENV.BACKEND_URL;
const RIGHT = 'status 200 and the right answer';

export const options = {
  thresholds: {
    ...cases,
    // k6's own times of a good request; the clock of the script for one that failed.
    'request_duration{endpoint:good,code:ok,server:a}': ['min==7', 'max==7'],
    'request_duration{endpoint:wrong,code:wrong}': ['min>=1000'],
    'request_duration{endpoint:malformed,code:wrong}': ['min>=1000'],
    'request_duration{endpoint:status,code:status-503}': ['min>=1000'],
    'request_duration{endpoint:refused,code:net-1212}': ['min>=1000'],
    'request_duration{endpoint:unnamed,code:net-1000}': ['min>=1000'],
    'request_duration{endpoint:switched,code:status-101}': ['min>=1000'],
    // Each operation is asked once, the first again, the one with a body twice more, and two with another answer in mind.
    [`checks{check:${RIGHT}}`]: [`rate==${(OPERATIONS.length + 4) / (OPERATIONS.length + 12)}`],
    'request_duration{endpoint:anyone,code:wrong}': ['max>0'],
    'http_reqs{name:echo}': ['count==1'],
    'request_duration{endpoint:echo,code:ok}': ['max>0'],
  },
};

/** A second ago. */
const before = () => Date.now() - 1000;
/** @returns {any} a response of k6, as far as it is read */
const response = (/** @type {object} */ changed = {}) => ({
  status: 200, body: '1', error_code: 0, headers: { 'X-Server': 'a' }, timings: { blocked: 2, duration: 5 }, ...changed,
});
const isOne = (/** @type {{body: string}} */ r) => JSON.parse(r.body) === 1;

export default run({
  'a request is good with the status 200 and the right answer': () => equal(record(response(), before(), 'good', isOne), true),
  'another answer, and none in the right form, is wrong': () => {
    equal(record(response({ body: '2' }), before(), 'wrong', isOne), false);
    equal(record(response({ body: '<html>' }), before(), 'malformed', isOne), false);
  },
  'a status, a failed connection and a switch of protocols are told apart': () => {
    equal(record(response({ status: 503 }), before(), 'status', isOne), false);
    equal(record(response({ status: 0, error_code: 1212 }), before(), 'refused', isOne), false);
    equal(record(response({ status: 0 }), before(), 'unnamed', isOne), false);
    equal(record(null, before(), 'switched', isOne), false);
  },
  'only the error of a switch of protocols is a request that failed': () => {
    equal(sent(() => { throw new Error('unsupported response status: 101 Switching Protocols'); }), null);
    throws(() => sent(() => { throw new Error('invalid URL'); }), 'invalid URL');
  },

  'the service gives each operation its one right answer': () => {
    for (const op of OPERATIONS) {
      equal(ask(base, op, 5)?.status, 200, op.name);
    }
  },
  'each registration has an id of its own, which the answer has to name': () => {
    const register = OPERATIONS.find((op) => op.body !== undefined);
    if (!register) {
      throw new Error('no operation has a body');
    }
    const ids = [1, 2].map(() => JSON.parse(ask(base, register, 5)?.body ?? '').result.id);
    equal(new Set(ids).size, 2);
    equal(ids.some((id) => id.includes('{')), false);
    ask(base, { ...register, name: 'anyone', answer: register.answer.replace('{unique}', 'someone') }, 5);
  },
  'the first iteration asks for the first operation': () => {
    equal(askNext(base, 5)?.request.url, base + OPERATIONS[0].path);
  },
  'an operation with another answer is told': () => {
    equal(ask(base, { ...OPERATIONS[0], name: 'not pi', answer: '3' }, 5)?.status, 200);
  },
});
