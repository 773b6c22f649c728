// @ts-check
// What is measured of a request, the same in every suite of requests.

import { check } from 'k6';
import { Trend } from 'k6/metrics';

/** From asking for a connection to the last byte, by stage, endpoint, server and outcome. */
const duration = new Trend('request_duration', true);

/** The tags by which metrics are kept apart; the stage is k6's scenario. */
export const SPLIT_BY = ['scenario', 'endpoint', 'server', 'code'];

/** Tags of k6 that suites have a use for; each of the others costs time on every sample. */
export const SYSTEM_TAGS = /** @type {import('k6/options').Options['systemTags']} */ (['scenario', 'status', 'error_code', 'check']);

/**
 * Makes a request. k6 throws where a service switches protocols unasked (status 101): a request that
 * failed like any other.
 *
 * @param {() => import('k6/http').RefinedResponse<'text'>} request
 * @returns {import('k6/http').RefinedResponse<'text'> | null}
 */
export function sent(request) {
  try {
    return request();
  } catch (error) {
    if (!String(error).includes('unsupported response status')) {
      throw error;
    }
    return null;
  }
}

/**
 * Records one request: good only when the status is 200 and the answer is right.
 *
 * @param {import('k6/http').RefinedResponse<'text'> | null} response null: {@link sent} had none
 * @param {number} started `Date.now()` before the request
 * @param {string} endpoint
 * @param {(response: import('k6/http').RefinedResponse<'text'>) => boolean} right
 * @returns {boolean} whether it was good
 */
export function record(response, started, endpoint, right) {
  const code = outcome(response, right);
  const good = code === 'ok';
  // What failed has no reliable timings in k6, such as the time of a connect that was refused.
  const took = good && response ? response.timings.blocked + response.timings.duration : Date.now() - started;
  duration.add(took, { endpoint, code, server: response?.headers['X-Server'] || '' });
  check(good, { 'status 200 and the right answer': (ok) => ok });
  return good;
}

/**
 * @param {import('k6/http').RefinedResponse<'text'> | null} response
 * @param {(response: import('k6/http').RefinedResponse<'text'>) => boolean} right
 * @returns {string} `ok`, `wrong`, `status-503` of an answer, or `net-1220` of an error of the network, by k6's
 *   number; k6 itself gives statuses numbers too, 1000 + status, some of which are those of its errors
 */
function outcome(response, right) {
  if (response === null) {
    return 'status-101';
  }
  if (response.status === 0) {
    return `net-${response.error_code || 1000}`;
  }
  if (response.status !== 200) {
    return `status-${response.status}`;
  }
  try {
    return right(response) ? 'ok' : 'wrong';
  } catch {
    return 'wrong'; // not even the form is right
  }
}
