// @ts-check
// Uploads: large bodies one after the other, and many in parallel. The server hashes what arrived;
// an upload is good only when that is the hash of what was sent.
//
//   bin/soak run upload                  judges it
//   bin/k6 run load-tests/http/upload.js --env BACKEND_URL=http://HOST --env PROFILE=smoke

import { randomBytes, sha256 } from 'k6/crypto';
import http from 'k6/http';

import { profile } from '../lib/profile.js';
import { record, sent } from '../lib/record.js';
import { Schedule } from '../lib/schedule.js';
import { authorization, url } from '../lib/settings.js';

const full = {
  SEQUENCE: 10,
  SEQUENCE_MB: 10,
  PARALLEL: 20,
  PARALLEL_MB: 5,
  STAGE_SECONDS: 30,
  TIMEOUT_SECONDS: 60,
  MIN_MB_PER_SECOND: 0,
};

const chosen = profile({
  full,
  smoke: { ...full, SEQUENCE: 3, SEQUENCE_MB: 2, PARALLEL: 6, PARALLEL_MB: 1, STAGE_SECONDS: 4, TIMEOUT_SECONDS: 4 },
});
const { values } = chosen;

const backend = url('BACKEND_URL');

/**
 * A body of its own for each virtual user, so that uploads that were mixed up show.
 *
 * @param {number} megabytes
 */
function made(megabytes) {
  const data = randomBytes(Math.round(megabytes * 1e6));
  return { data, receipt: JSON.stringify({ bytes: data.byteLength, sha256: sha256(data, 'hex') }) };
}

const bodies = { sequence: made(values.SEQUENCE_MB), parallel: made(values.PARALLEL_MB) };

const schedule = new Schedule();
schedule.shared({
  name: 'sequence',
  title: `${values.SEQUENCE} × ${values.SEQUENCE_MB} MB in sequence`,
  kind: 'sequence',
  concurrency: 1,
  requests: values.SEQUENCE,
  seconds: values.STAGE_SECONDS,
  timeout: values.TIMEOUT_SECONDS,
  exec: 'sequence',
});
schedule.atOnce({
  name: 'parallel',
  title: `${values.PARALLEL} × ${values.PARALLEL_MB} MB in parallel`,
  kind: 'parallel',
  requests: values.PARALLEL,
  seconds: values.STAGE_SECONDS,
  timeout: values.TIMEOUT_SECONDS,
  exec: 'parallel',
});

export const options = schedule.suite('upload', chosen);

/** @param {{data: ArrayBuffer, receipt: string}} body */
function send(body) {
  const started = Date.now();
  const response = sent(() => http.post(`${backend}/default/upload`, body.data, {
    headers: { 'Content-Type': 'application/octet-stream', ...authorization() },
    tags: { name: 'upload' },
    responseType: 'text',
    timeout: values.TIMEOUT_SECONDS * 1000,
  }));
  record(response, started, 'upload', (r) => JSON.stringify(JSON.parse(r.body)) === body.receipt);
}

export function sequence() {
  send(bodies.sequence);
}

export function parallel() {
  send(bodies.parallel);
}
