// @ts-check
// Mercure hub, 0.24 (github.com/dunglas/mercure v0.24.2: subscribe.go, publish.go, hub.go, event.go). The hub
// allows anonymous subscribers, or SUBSCRIBE_TOKEN has their JWT; PUBLISH_TOKEN has the publisher's. From 1.0
// on `topic` is `match` in the URL of a stream, and the header of a gap is Mercure-Last-Event-Id
// (docs/UPGRADE.md of the hub).

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'mercure',
  token: () => __ENV.SUBSCRIBE_TOKEN || '',
  connect: {
    url: '{base}/.well-known/mercure?topic={topic}',
    headers: { Authorization: 'Bearer {token}' },
  },
  // SubscribeHandler writes `:` and one line end after 40 s without an update (DefaultHeartbeat), and no blank
  // line: the comment ends with the block of the next update.
  heartbeat: { comment: true, every: 40 },
  // event.go: `id:` is urn:uuid, no sequence; the data as it was published.
  message: { seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
  // DefaultWriteTimeout is 600 s; randomizeWriteDeadline takes 80 to 100 % of it, less 5 s to dispatch.
  end: { by: 'server', lifetime: [475, 600] },
  // sendHeaders: the hub answers with the id that it was asked for. Where it has no such event it is another one
  // (dispatchHistory in bolt.go: the last of its history that the client may read), or `earliest`, as from the transport
  // `local`, which has no history at all.
  resume: { by: 'header', gap: { header: 'Last-Event-ID: {other}' } },
  publish: {
    method: 'POST',
    url: '{base}/.well-known/mercure',
    headers: {
      Authorization: 'Bearer {token}',
      'Content-Type': 'application/x-www-form-urlencoded',
    },
    body: 'topic={topic}&data={"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}', // what a form cannot have is encoded
    ok: [200],
  },
};
