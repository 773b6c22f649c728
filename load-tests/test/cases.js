// @ts-check
// Helpers for the tests of load-tests/lib. A test script is a table of cases. Each case is a check of k6; if a check
// fails, a threshold sets the exit code 99. test/e2e/examples_test.go runs the scripts.

import { check } from 'k6';

/** The tag of the checks of cases, which distinguishes them from checks of the tested code. */
const tags = { of: 'case' };

export const thresholds = { 'checks{of:case}': ['rate==1'] };

/** @typedef {Record<string, () => void | Promise<void>>} Cases by their description */

/**
 * Returns the default function of a test script, which runs the cases one after the other.
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
 * Runs the cases at once, in the init context, and returns the default function, which reports the results. The init
 * context is necessary because each virtual user has its own __ENV.
 *
 * @param {Record<string, () => void>} cases
 * @returns {() => Promise<void>}
 */
export function runInInit(cases) {
  /** @type {Cases} */
  const results = {};
  for (const [name, test] of Object.entries(cases)) {
    results[name] = () => {};
    try {
      test();
    } catch (e) {
      results[name] = () => { throw e; };
    }
  }
  return run(results);
}

/**
 * @param {unknown} got
 * @param {unknown} want compared as JSON
 * @param {string} [name] of the value, for the message
 */
export function equal(got, want, name = 'the value') {
  const [actual, expected] = [JSON.stringify(got), JSON.stringify(want)];
  if (actual !== expected) {
    throw new Error(`${name} must be ${expected}, got ${actual}`);
  }
}

/**
 * @param {() => unknown} f a function that must throw
 * @param {string} part of its message
 */
export function throws(f, part) {
  let message = '';
  try {
    f();
  } catch (error) {
    message = String(error);
  }
  if (!message.includes(part)) {
    throw new Error(`the function must throw an error with "${part}", got "${message}"`);
  }
}

/**
 * Calls f with these environment variables, and then restores them.
 *
 * @template T
 * @param {Record<string, string>} env
 * @param {() => T} f
 * @returns {T}
 */
export function withEnvironment(env, f) {
  const saved = Object.fromEntries(Object.keys(env).map((name) => [name, __ENV[name] ?? '']));
  Object.assign(__ENV, env);
  try {
    return f();
  } finally {
    Object.assign(__ENV, saved);
  }
}
