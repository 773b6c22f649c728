// @ts-check
// Loads the service of the setting SERVICE: a module of load-tests/services, or one of the user. If it is invalid,
// the script throws in the init context.

import * as soak from 'k6/x/soak';

import { NOOP } from './config.js';
import { SERVICES } from './plan.js';

/**
 * Loads a service, and returns the compiled service and its description as data, with true for functions.
 * `customToken` states whether token() returns a token other than SUBSCRIBE_TOKEN.
 *
 * @param {string} [name] of the service; default: SERVICE
 * @returns {{service: import('k6/x/soak').Service, description: object, customToken: boolean}}
 */
export function loadService(name = soak.setting('SERVICE')) {
  const description = load(name).default;
  if (typeof description !== 'object' || description === null) {
    throw new Error(`SERVICE must be a module with a description as its default export, such as export default { name: …, connect: …, message: … }, got "${name}"`);
  }
  const { token } = description;
  const customToken = typeof token === 'function' && !String(token).includes('SUBSCRIBE_TOKEN');
  return { service: soak.service(description), description: dataOf(description), customToken };
}

/**
 * Returns the noop service with the interval of a suite.
 *
 * @param {number} interval of noops, in s
 * @returns {import('k6/x/soak').Service}
 */
export function noopService(interval) {
  const { message, ...description } = load(NOOP).default;
  return soak.service({ ...description, message: { ...message, every: interval } });
}

/**
 * Returns the exports of a module.
 *
 * @param {string} name of a module of load-tests/services, or a path
 * @returns {any}
 */
function load(name) {
  const isPath = name.endsWith('.js');
  const onDrive = /^[A-Za-z]:[\\/]/.test(name); // a path on Windows
  if (isPath && !onDrive && !name.startsWith('/')) {
    throw new Error(`SERVICE must be the absolute path of a module, got "${name}"`);
  }
  const file = onDrive ? `file:///${name.replaceAll('\\', '/')}` : name;
  const path = isPath ? file : `../services/${name}.js`;
  try {
    return require(path); // SERVICES may lack a module that was added later
  } catch (e) {
    const text = e instanceof Error ? e.message : String(e);
    if (!text.includes(`"${path}" couldn't be found`)) {
      throw new Error(`the module ${path} of SERVICE cannot be loaded: ${text}`, { cause: e });
    }
    const known = `${SERVICES.slice(0, -1).join(', ')} and ${SERVICES[SERVICES.length - 1]}`;
    throw new Error(`SERVICE must be the path of ${isPath ? 'an existing file' : `a .js file, or one of ${known}`}, got "${name}"`, { cause: e });
  }
}

/**
 * Returns a description as data, with true for functions.
 *
 * @param {object} description
 * @returns {object}
 */
function dataOf(description) {
  return JSON.parse(JSON.stringify(description, (_, value) => (typeof value === 'function' ? true : value)));
}
