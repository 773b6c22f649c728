// @ts-check
// The operations of the service under test, with their expected responses.

import { authorization } from './config.js';

/** @typedef {import('k6/x/requests').Operation} Operation */

/** A registration with a unique id, which k6/x/requests inserts. */
const ACCOUNT = { id: '{unique}', email: 'user-{unique}@example.com', name: 'Ada Lovelace' };

/**
 * Returns the operations of the service. The last one is the health check.
 *
 * @param {string} base URL of the service
 * @returns {Operation[]}
 */
export function operationsOf(base) {
  /**
   * @param {string} name
   * @param {string} query
   * @param {unknown} result
   * @returns {Operation}
   */
  const operation = (name, query, result) => ({
    name, url: `${base}/default/services/calculator/${name}${query}`, headers: authorization(), want: { json: result, at: 'result' },
  });
  return [
    operation('math.multiply', '?a=9&b=22', 198),
    operation('math.add', '?a=9&b=22', 31),
    operation('math.power', '?a=2&b=10', 1024),
    operation('string.upper', '?text=every%20single%20noop', 'EVERY SINGLE NOOP'),
    operation('echo', '?text=a%26b%20%3D%20c', 'a&b = c'),
    operation('array.sort', '?values=3,1,2,-5,0.5', [-5, 0.5, 1, 2, 3]),
    {
      ...operation('account.register', '', ACCOUNT),
      method: 'POST',
      headers: { ...authorization(), 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...ACCOUNT, name: ` ${ACCOUNT.name} ` }),
    },
    operation('status', '', 'ok'),
  ];
}
