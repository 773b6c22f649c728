// @ts-check
// Load profiles by name: PROFILE chooses one, and each of its values is also an environment
// variable of that name.

import { list, number } from './settings.js';

/**
 * @template {Record<string, number | number[]>} Values
 * @typedef {{name: string, values: Values, parameters: Record<string, string>}} Profile
 */

/**
 * Chooses the profile that PROFILE names (`full` without), and lets the environment change it.
 *
 * @template {Record<string, number | number[]>} Values
 * @param {{smoke: Values, full: Values}} profiles
 * @returns {Profile<Values>} `parameters` has the values as text, for the shard
 */
export function profile(profiles) {
  const name = __ENV.PROFILE || 'full';
  if (name !== 'smoke' && name !== 'full') {
    throw new Error(`PROFILE is "${name}": it must be smoke or full.`);
  }
  /** @type {Record<string, number | number[]>} */
  const values = {};
  /** @type {Record<string, string>} */
  const parameters = {};
  for (const [key, fallback] of Object.entries(profiles[name])) {
    values[key] = Array.isArray(fallback) ? list(key, fallback) : number(key, fallback);
    if (!Array.isArray(fallback) && Number(values[key]) < 0) {
      throw new Error(`${key} is ${values[key]}: it must not be below 0.`);
    }
    parameters[key] = String(values[key]);
  }
  return { name, values: /** @type {Values} */ (values), parameters };
}
