// @ts-check
// Uploads: large bodies in sequence and in parallel. The server returns the hash of the received body, which must
// equal the hash of the sent body.
//
//   bin/soak run upload                  with a verdict
//   bin/k6 run load-tests/http/upload.js --env BACKEND_URL=http://HOST --env PROFILE=smoke

import { randomBytes, sha256 } from 'k6/crypto';
import { profile, url } from 'k6/x/soak';

import { authorization } from '../lib/config.js';
import { Schedule } from '../lib/schedule.js';

const full = {
  SEQUENCE: 10,
  SEQUENCE_MB: 10,
  PARALLEL: 20,
  PARALLEL_MB: 5,
  STAGE_SECONDS: 30,
  TIMEOUT_SECONDS: 60,
  MIN_MB_PER_SECOND: 0,
};

const chosen = profile('upload', {
  full,
  smoke: { ...full, SEQUENCE: 3, SEQUENCE_MB: 2, PARALLEL: 6, PARALLEL_MB: 1, STAGE_SECONDS: 4, TIMEOUT_SECONDS: 4 },
});
const { values } = chosen;

const backend = url('BACKEND_URL');

/** Maximum size of all bodies of a stage, which each runner keeps in memory, in MB. */
const MAX_MB = 1000;
for (const part of /** @type {const} */ (['SEQUENCE', 'PARALLEL'])) {
  if (values[part] * values[`${part}_MB`] > MAX_MB) {
    throw new Error(`${part} × ${part}_MB must be at most ${MAX_MB}, because each runner keeps all bodies in memory, got ${values[part]} × ${values[`${part}_MB`]}; lower ${part} or ${part}_MB`);
  }
}

/**
 * Returns uploads of one size with different bodies, so that exchanged uploads are detected.
 *
 * @param {number} count
 * @param {number} megabytes
 * @returns {() => import('k6/x/requests').Operation[]}
 */
function uploads(count, megabytes) {
  return () => Array.from({ length: count }, () => {
    const body = randomBytes(Math.round(megabytes * 1e6));
    return {
      name: 'upload',
      method: 'POST',
      url: `${backend}/default/upload`,
      headers: { 'Content-Type': 'application/octet-stream', ...authorization() },
      body,
      want: { json: { bytes: body.byteLength, sha256: sha256(body, 'hex') } },
    };
  });
}

const schedule = new Schedule(chosen.runners);
schedule.closed({
  name: 'sequence',
  title: `${values.SEQUENCE} × ${values.SEQUENCE_MB} MB in sequence`,
  kind: 'sequence',
  concurrency: 1,
  requests: values.SEQUENCE,
  seconds: values.STAGE_SECONDS,
  timeout: values.TIMEOUT_SECONDS,
  operations: uploads(values.SEQUENCE, values.SEQUENCE_MB),
});
schedule.burst({
  name: 'parallel',
  title: `${values.PARALLEL} × ${values.PARALLEL_MB} MB in parallel`,
  kind: 'parallel',
  requests: values.PARALLEL,
  seconds: values.STAGE_SECONDS,
  timeout: values.TIMEOUT_SECONDS,
  operations: uploads(values.PARALLEL, values.PARALLEL_MB),
});

export const options = schedule.suite('upload', chosen);

export default () => schedule.run();
