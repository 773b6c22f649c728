// @ts-check
// ntfy 2.13 (github.com/binwiederhier/ntfy v2.13.0: server/server.go, topic.go, types.go, config.go;
// https://docs.ntfy.sh/subscribe/api/). By default a visitor (an IP address) has 30 subscriptions and 60 requests.
// Raise visitor-subscription-limit, visitor-request-limit-burst and visitor-message-daily-limit, or exempt the host.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'ntfy',
  token: () => __ENV.SUBSCRIBE_TOKEN || '',
  connect: { url: '{base}/{topic}/sse', headers: { Authorization: 'Bearer {token}' } },
  // handleSubscribeSSE: the name of every event except a message is its kind. DefaultKeepaliveInterval is 45 s.
  heartbeat: { event: 'keepalive', every: 45 },
  message: {
    event: 'message', // not `open`, the first event of each stream
    // types.go: tags are a list of the published texts. The body is text, not JSON.
    run: 'json:$.tags[0]',
    seq: 'json:$.tags[1]',
    sentAt: 'json:$.tags[2]', // $.time has whole seconds
    sum: 'json:$.tags[3]',
    order: 'any', // topic.go, Publish: a goroutine for each message and subscriber
  },
  end: { by: 'client' },
  // Events have no `id:`. parseSince: the id of a message is in its data.
  resume: { by: { query: 'since' }, id: 'json:$.id' },
  publish: {
    method: 'POST',
    url: '{base}/{topic}',
    headers: { Authorization: 'Bearer {token}', 'X-Tags': '{run},{seq},{sentAt},{sum}' },
    body: 'soak{padding}', // up to 4 KB; a larger one becomes an attachment
    ok: [200],
  },
};
