// @ts-check
// The operations of the service under test, each with the one right answer.

import exec from 'k6/execution';
import http from 'k6/http';
import { sendOnce } from 'k6/x/soak';

import { record, sent } from './record.js';
import { authorization } from './settings.js';

/**
 * An operation with a `body` is posted. {@link UNIQUE} in body and answer stands for a text that no other request has.
 *
 * @typedef {{name: string, path: string, answer: string, body?: string}} Operation
 */

/**
 * @param {string} name
 * @param {string} query
 * @param {unknown} result
 * @returns {Operation}
 */
function operation(name, query, result) {
  return { name, path: `/default/services/calculator/${name}${query}`, answer: JSON.stringify(result) };
}

/** What stands for a text of its own in each request, as in the operations of k6/x/requests. */
const UNIQUE = '{unique}';

const ACCOUNT = { id: UNIQUE, email: `user-${UNIQUE}@example.com`, name: 'Ada Lovelace' };

export const OPERATIONS = [
  operation('math.multiply', '?a=9&b=22', 198),
  operation('math.add', '?a=9&b=22', 31),
  operation('math.power', '?a=2&b=10', 1024),
  operation('string.upper', '?text=every%20single%20noop', 'EVERY SINGLE NOOP'),
  operation('echo', '?text=a%26b%20%3D%20c', 'a&b = c'),
  operation('array.sort', '?values=3,1,2,-5,0.5', [-5, 0.5, 1, 2, 3]),
  { ...operation('account.register', '', ACCOUNT), body: JSON.stringify({ ...ACCOUNT, name: ` ${ACCOUNT.name} ` }) },
  operation('status', '', 'ok'),
];

/**
 * All of them, as data for k6/x/requests.
 *
 * @param {string} base URL of the service
 * @returns {import('k6/x/requests').Operation[]}
 */
export function operationsOf(base) {
  return OPERATIONS.map(({ name, path, answer, body }) => ({
    name,
    method: body === undefined ? 'GET' : 'POST',
    url: base + path,
    headers: body === undefined ? authorization() : { ...authorization(), 'Content-Type': 'application/json' },
    body,
    want: { json: JSON.parse(answer), at: 'result' },
  }));
}

/**
 * Asks the service and records the answer.
 *
 * @param {string} base URL of the service
 * @param {Operation} op
 * @param {number} timeout in seconds
 * @returns {import('k6/http').RefinedResponse<'text'> | null}
 */
export function ask(base, op, timeout) {
  sendOnce();
  const params = /** @type {const} */ ({ headers: authorization(), tags: { name: op.name }, responseType: 'text', timeout: timeout * 1000 });
  const { body } = op;
  if (body === undefined) {
    const started = Date.now();
    return recorded(sent(() => http.get(base + op.path, params)), started, op, op.answer);
  }
  const own = unique();
  const filled = body.replaceAll(UNIQUE, own);
  const headers = { ...params.headers, 'Content-Type': 'application/json' };
  const started = Date.now();
  return recorded(sent(() => http.post(base + op.path, filled, { ...params, headers })), started, op, op.answer.replaceAll(UNIQUE, own));
}

let made = 0;

/** A text that no other request has, in this run or another. */
function unique() {
  made++;
  return `${exec.scenario.startTime.toString(36)}-${exec.vu.idInTest}-${made}`;
}

/**
 * @param {import('k6/http').RefinedResponse<'text'> | null} response
 * @param {number} started
 * @param {Operation} op
 * @param {string} answer
 */
function recorded(response, started, op, answer) {
  record(response, started, op.name, (r) => JSON.stringify(JSON.parse(r.body).result) === answer);
  return response;
}

/**
 * Asks for the operation whose turn it is: each iteration of a scenario takes the next one.
 *
 * @param {string} base URL of the service
 * @param {number} timeout in seconds
 */
export function askNext(base, timeout) {
  return ask(base, OPERATIONS[exec.scenario.iterationInTest % OPERATIONS.length], timeout);
}
