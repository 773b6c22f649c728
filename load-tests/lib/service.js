// @ts-check
// The service that a soak is asked for by SERVICE: a module of load-tests/services, or one of the user's own.
// Whatever is wrong with it stops the script in the init context, with one sentence.

import * as soak from 'k6/x/soak';

import { NOOP } from './config.js';
import { SERVICES } from './plan.js';

/**
 * Loads what SERVICE names.
 *
 * @param {string} [name] of the service; left out: that of the setting
 * @returns {{service: import('k6/x/soak').Service, description: object, ownToken: boolean}} compiled, and as data: with true
 *   in the place of each function; and whether token() gives another token than SUBSCRIBE_TOKEN
 */
export function loadService(name = soak.setting('SERVICE')) {
  const description = load(name).default;
  if (typeof description !== 'object' || description === null) {
    throw new Error(`SERVICE is "${name}": the module has no description, which is its default export: export default { name: …, connect: …, message: … }.`);
  }
  const { token } = description;
  const ownToken = typeof token === 'function' && !String(token).includes('SUBSCRIBE_TOKEN');
  return { service: soak.service(description), description: dataOf(description), ownToken };
}

/**
 * The original protocol, for a suite that has an interval of its own.
 *
 * @param {number} interval of noops, in s
 * @returns {import('k6/x/soak').Service}
 */
export function noopService(interval) {
  const { message, ...description } = load(NOOP).default;
  return soak.service({ ...description, message: { ...message, every: interval } });
}

/**
 * @param {string} name of a module, or a path
 * @returns {any} what it exports
 */
function load(name) {
  const own = name.endsWith('.js');
  const onDrive = /^[A-Za-z]:[\\/]/.test(name); // of Windows
  if (own && !onDrive && !name.startsWith('/')) {
    throw new Error(`SERVICE is "${name}": write the whole path of the module, from / on.`);
  }
  const file = onDrive ? `file:///${name.replaceAll('\\', '/')}` : name;
  const path = own ? file : `../services/${name}.js`;
  try {
    return require(path); // also of one that SERVICES does not have yet
  } catch (e) {
    const text = e instanceof Error ? e.message : String(e);
    if (!text.includes(`"${path}" couldn't be found`)) {
      throw new Error(`the module ${path} of SERVICE cannot be loaded: ${text}`, { cause: e });
    }
    const known = `${SERVICES.slice(0, -1).join(', ')} and ${SERVICES[SERVICES.length - 1]}`;
    throw new Error(`SERVICE is "${name}": ${own ? 'there is no such file.' : `must be the path of a .js file, or one of ${known}.`}`, { cause: e });
  }
}

/**
 * @param {object} description
 * @returns {object}
 */
function dataOf(description) {
  return JSON.parse(JSON.stringify(description, (_, value) => (typeof value === 'function' ? true : value)));
}
