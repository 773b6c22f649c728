// @ts-check
// lib/operations.js: the responses of the service match the expected responses of the operations.

import { closed } from 'k6/x/requests';

import { operationsOf } from '../lib/operations.js';
import { equal, run, thresholds } from './cases.js';

export const options = { thresholds };

const operations = operationsOf(__ENV.BACKEND_URL);

/**
 * @param {import('k6/x/requests').Operation[]} selected
 * @param {number} requests
 * @returns {Promise<number[]>} the number of requests, and the number of failed requests
 */
async function request(selected, requests) {
  const { made, failed } = await closed({ operations: selected, concurrency: 1, requests });
  return [made, failed];
}

export default run({
  'the responses of the service match the operations': async () => {
    for (const operation of operations) {
      equal(await request([operation], 1), [1, 0], operation.name);
    }
  },
  'each registration has a unique id': async () => {
    const register = operations.filter(({ body }) => body !== undefined);
    equal(await request(register, 20), [20, 0]);
    equal(await request([{ ...register[0], want: { json: { id: 'another' }, at: 'result' } }], 1), [1, 1]);
  },
  'another result is a failure': async () => {
    equal(await request([{ ...operations[0], want: { json: 3, at: 'result' } }], 1), [1, 1]);
  },
});
