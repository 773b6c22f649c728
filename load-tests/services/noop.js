// @ts-check
// The protocol of the original test, which our backend and others speak: docs/architecture.md. This is what
// a soak holds that names no service.
//
// From backend/: GET /event/connect?id= answers 409 for an id that has a stream; a noop is `data: 0`, ours
// with `id:` 1, 2, 3 … of the id, which go on when it connects again, and with a comment in the event,
// `: sent=` and the time in microseconds. DELETE /event/forcedisconnect?id= ends the stream. Backends of
// others send the bare noop: the clock counts it.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'noop',
  token: 'BACKEND_TOKEN',
  connect: {
    url: '{base}/event/connect?id={id}',
    headers: { Authorization: 'Bearer {token}' }, // left out without a token
  },
  message: {
    noun: 'noop',
    event: 'message', // one without a name
    data: '0',
    seq: 'id',
    sentAt: 'comment:^ *sent=([0-9]+) *$',
    per: 'stream',
    every: Number(__ENV.NOOP_INTERVAL || 15),
  },
  end: {
    by: 'request',
    method: 'DELETE',
    url: '{base}/event/forcedisconnect?id={id}',
    headers: { Authorization: 'Bearer {token}' },
    ok: [200],
  },
  resume: { by: 'header' }, // the numbers go on, and ours makes the noops of the outage anew
};
