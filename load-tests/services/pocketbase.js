// @ts-check
// PocketBase 0.39 (github.com/pocketbase/pocketbase v0.39.11: apis/realtime.go, tools/subscriptions). It needs a
// collection `soak` with the fields topic, run and sum (text), seq and t (number), and empty List, View and Create
// rules, or tokens: SUBSCRIBE_TOKEN and PUBLISH_TOKEN.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'pocketbase',
  token: () => __ENV.SUBSCRIBE_TOKEN || '',
  connect: {
    url: '{base}/api/realtime',
    // realtimeConnect: the first event is PB_CONNECT with the client's id. realtimeSetSubscriptions wants it back,
    // from the same IP address, with what the client subscribes to; each connection needs it anew.
    then: {
      event: 'PB_CONNECT',
      client: 'json:$.clientId',
      method: 'POST',
      url: '{base}/api/realtime',
      headers: { Authorization: '{token}' },
      // subscriptions/client.go: options are JSON in a query, and the filter is one of them.
      body: `{"clientId":"{client}","subscriptions":["soak/*?options=${encodeURIComponent('{"query":{"filter":"topic=\'')}{topic}${encodeURIComponent('\'"}}')}"]}`,
      ok: [204],
    },
  },
  // No heartbeat: realtimeConnect sends nothing but messages, and ends a stream that had none for 5 minutes.
  // The name of an event is the subscription, and `id:` is the client's id, always the same: no sequence.
  message: { seq: 'json:$.record.seq', run: 'json:$.record.run', sentAt: 'json:$.record.t', sum: 'json:$.record.sum' },
  // RealtimeConnectRequestEvent: IdleTimeout 5 minutes, MaxTimeout 30.
  end: { by: 'server', lifetime: [300, 1800] },
  resume: { by: 'none' }, // there is no history
  publish: {
    method: 'POST',
    url: '{base}/api/collections/soak/records',
    headers: { Authorization: '{token}' },
    body: '{"topic":"{topic}","run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}',
    ok: [200],
  },
};
