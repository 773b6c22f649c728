// @ts-check
// Centrifugo 6 (github.com/centrifugal/centrifugo v6.9.1: internal/unisse, internal/configtypes, internal/api;
// https://centrifugal.dev/docs/transports/uni_sse and uni_client_protocol). It needs uni_sse.enabled.
// SUBSCRIBE_TOKEN is the JWT of a user. Without it, set client.allow_anonymous_connect_without_token, and
// channel.without_namespace.allow_subscribe_for_client and allow_subscribe_for_anonymous. PUBLISH_TOKEN is the API key.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'centrifugo',
  token: () => __ENV.SUBSCRIBE_TOKEN || '',
  // unisse/handler.go: the connect request is JSON in the parameter cf_connect.
  connect: { url: '{base}/connection/uni_sse?cf_connect={"token":"{token}","subs":{"{topic}":{}}}' },
  // PingPongConfig: {} every 25 s.
  heartbeat: { data: '{}', every: 25 },
  // A publication is {"channel":…,"pub":{"data":…,"offset":…}}. Other events, such as {"connect":…}, have no marker.
  // Centrifugo sends no `id:`.
  message: { seq: 'json:$.pub.data.seq', run: 'json:$.pub.data.run', sentAt: 'json:$.pub.data.t', sum: 'json:$.pub.data.sum' },
  end: { by: 'client' },
  // Docs of uni_sse: Last-Event-ID is not supported. A client can recover by offset and epoch in cf_connect.
  resume: { by: 'none' },
  publish: {
    method: 'POST',
    url: '{base}/api/publish',
    // api/handler.go: without the error mode, the response to a refused message is a 200 with an error in its body.
    headers: { 'X-API-Key': '{token}', 'X-Centrifugo-Error-Mode': 'transport' },
    body: '{"channel":"{topic}","data":{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}}',
    ok: [200],
  },
};
