// @ts-check
// The noop protocol of the original test (docs/reference/protocol.md), which backend/ implements. A soak without
// SERVICE uses this description.
//
// GET /event/connect?id= returns 409 if the id has a stream. A noop is `data: 0`. Noops of backend/ have an `id:` of
// 1, 2, 3 … per client id, which continues after a reconnect, and a comment `: sent=` with the time in microseconds.
// DELETE /event/forcedisconnect?id= ends the stream. Noops of other backends may lack the id and the comment. Noops
// without an id are counted by interval.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'noop',
  token: 'BACKEND_TOKEN',
  connect: {
    url: '{base}/event/connect?id={id}',
    headers: { Authorization: 'Bearer {token}' }, // omitted without a token
  },
  message: {
    noun: 'noop',
    event: 'message', // an event without a name
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
  resume: { by: 'header' }, // numbers continue, and backend/ sends the noops of the outage
};
