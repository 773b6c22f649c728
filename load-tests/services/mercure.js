// @ts-check
// Mercure hub, 0.24 (github.com/dunglas/mercure v0.24.2: subscribe.go, publish.go, hub.go, event.go). The hub
// allows anonymous subscribers, or SUBSCRIBE_TOKEN is their JWT. PUBLISH_TOKEN is the JWT of the publisher. From 1.0
// on, the URL of a stream has `match` instead of `topic`, and the header of a gap is Mercure-Last-Event-Id
// (docs/UPGRADE.md of the hub).

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'mercure',
  token: () => __ENV.SUBSCRIBE_TOKEN || '',
  connect: {
    url: '{base}/.well-known/mercure?topic={topic}',
    headers: { Authorization: 'Bearer {token}' },
  },
  // After 40 s without an update (DefaultHeartbeat), SubscribeHandler writes `:` and one line end, but no blank
  // line. The comment is thus part of the block of the next update.
  heartbeat: { comment: true, every: 40 },
  // event.go: `id:` is urn:uuid, not a sequence number; the data is as published.
  message: { seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
  // DefaultWriteTimeout is 600 s; randomizeWriteDeadline uses 80 to 100 % of it, minus 5 s for dispatch.
  end: { by: 'server', lifetime: [475, 600] },
  // sendHeaders: the hub returns the requested id. If it does not have that event, it returns another id
  // (dispatchHistory in bolt.go: the last event of its history that the client may read) or `earliest`, like the
  // transport `local`, which has no history.
  resume: { by: 'header', gap: { header: 'Last-Event-ID: {other}' } },
  publish: {
    method: 'POST',
    url: '{base}/.well-known/mercure',
    headers: {
      Authorization: 'Bearer {token}',
      'Content-Type': 'application/x-www-form-urlencoded',
    },
    body: 'topic={topic}&data={"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}', // characters that a form cannot contain are encoded
    ok: [200],
  },
};
