// @ts-check
// lib/operations.js: the responses of the service match the expected responses of the operations.

import { closed } from 'k6/x/requests';

import { operationsOf } from '../lib/operations.js';
import { equal, run, thresholds } from './cases.js';

export const options = { thresholds };

const operations = operationsOf(__ENV.BACKEND_URL);

/**
 * @param {import('k6/x/requests').Operation[]} some
 * @param {number} requests
 * @returns {Promise<number[]>} the number of requests, and the number of failed requests
 */
async function ask(some, requests) {
  const { made, failed } = await closed({ operations: some, concurrency: 1, requests });
  return [made, failed];
}

export default run({
  'the service gives each operation its one right answer': async () => {
    for (const operation of operations) {
      equal(await ask([operation], 1), [1, 0], operation.name);
    }
  },
  'each registration has an id of its own': async () => {
    const register = operations.filter(({ body }) => body !== undefined);
    equal(await ask(register, 20), [20, 0]);
    equal(await ask([{ ...register[0], want: { json: { id: 'someone' }, at: 'result' } }], 1), [1, 1]);
  },
  'another answer is wrong': async () => {
    equal(await ask([{ ...operations[0], want: { json: 3, at: 'result' } }], 1), [1, 1]);
  },
});
