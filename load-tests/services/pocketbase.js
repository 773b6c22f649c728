// @ts-check
// PocketBase 0.39 (github.com/pocketbase/pocketbase v0.39.11: apis/realtime.go, tools/subscriptions). It needs a
// collection `soak` with the fields topic, run and sum (text), seq and t (number). Its List, View and Create rules are
// empty, or SUBSCRIBE_TOKEN and PUBLISH_TOKEN are set.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'pocketbase',
  token: () => __ENV.SUBSCRIBE_TOKEN || '',
  connect: {
    url: '{base}/api/realtime',
    // realtimeConnect: the first event is PB_CONNECT with the client's id. realtimeSetSubscriptions expects that id and
    // the subscriptions, from the same IP address, for each connection.
    then: {
      event: 'PB_CONNECT',
      client: 'json:$.clientId',
      method: 'POST',
      url: '{base}/api/realtime',
      headers: { Authorization: '{token}' },
      // subscriptions/client.go: options are JSON in the query, and the filter is an option.
      body: `{"clientId":"{client}","subscriptions":["soak/*?options=${encodeURIComponent('{"query":{"filter":"topic=\'')}{topic}${encodeURIComponent('\'"}}')}"]}`,
      ok: [204],
    },
  },
  // There is no heartbeat: realtimeConnect sends only messages, and ends a stream after 5 minutes without a message.
  // The name of an event is the subscription. `id:` is the client's id, not a sequence number.
  message: { seq: 'json:$.record.seq', run: 'json:$.record.run', sentAt: 'json:$.record.t', sum: 'json:$.record.sum' },
  // RealtimeConnectRequestEvent: IdleTimeout 5 minutes, MaxTimeout 30.
  end: { by: 'server', lifetime: [300, 1800] },
  resume: { by: 'none' }, // PocketBase has no history
  publish: {
    method: 'POST',
    url: '{base}/api/collections/soak/records',
    headers: { Authorization: '{token}' },
    body: '{"topic":"{topic}","run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}',
    ok: [200],
  },
};
