// @ts-check
// What the tests of load-tests/lib share. A test script is a table of cases; each is a check of k6, and a
// threshold makes a failed one the exit code 99. test/e2e/lib_test.go runs the scripts.

import { check } from 'k6';

/** The checks that are cases, apart from those that the tested code makes itself. */
const tags = { of: 'case' };

export const thresholds = { 'checks{of:case}': ['rate==1'] };

/** @typedef {Record<string, () => void | Promise<void>>} Cases by what each shows */

/**
 * The default function of a test script: runs the cases one after the other.
 *
 * @param {Cases} cases
 * @returns {() => Promise<void>}
 */
export function run(cases) {
  return async () => {
    const errors = [];
    for (const [name, test] of Object.entries(cases)) {
      let error = '';
      try {
        await test();
      } catch (e) {
        error = String(e);
        errors.push(`${name}: ${error}`);
      }
      check(error, { [name]: (text) => text === '' }, tags);
    }
    if (errors.length > 0) {
      throw new Error(errors.join('\n'));
    }
  };
}

/**
 * Runs the cases at once, in the init context, and returns the default function that tells. What a script
 * reads of its environment is read there: a virtual user has an __ENV of its own.
 *
 * @param {Record<string, () => void>} cases
 * @returns {() => Promise<void>}
 */
export function runInInit(cases) {
  /** @type {Cases} */
  const told = {};
  for (const [name, test] of Object.entries(cases)) {
    told[name] = () => {};
    try {
      test();
    } catch (e) {
      told[name] = () => { throw e; };
    }
  }
  return run(told);
}

/**
 * @param {unknown} got
 * @param {unknown} want compared as JSON
 * @param {string} [what]
 */
export function equal(got, want, what = 'it') {
  const [is, should] = [JSON.stringify(got), JSON.stringify(want)];
  if (is !== should) {
    throw new Error(`${what} is ${is}, not ${should}`);
  }
}

/**
 * @param {boolean} holds
 * @param {string} what it says where it does not
 */
export function that(holds, what) {
  if (!holds) {
    throw new Error(what);
  }
}

/**
 * @param {() => unknown} f has to throw
 * @param {string} says a part of its message
 */
export function throws(f, says) {
  let message = '';
  try {
    f();
  } catch (error) {
    message = String(error);
  }
  that(message.includes(says), `it says "${message}", not "${says}"`);
}

/**
 * Calls f with these environment variables, and takes them back.
 *
 * @template T
 * @param {Record<string, string>} env
 * @param {() => T} f
 * @returns {T}
 */
export function given(env, f) {
  const before = Object.fromEntries(Object.keys(env).map((name) => [name, __ENV[name] ?? '']));
  Object.assign(__ENV, env);
  try {
    return f();
  } finally {
    Object.assign(__ENV, before);
  }
}
