// @ts-check
// Describes the backend as a service to which the run publishes. Each message is JSON of 100 bytes, and is sent to every
// stream. BenchmarkMessages compares the cost of receiving such a message with the cost of a noop.

/** @type {import('../../load-tests/types/service').ServiceDescription} */
export default {
  name: 'bench',
  token: () => __ENV.BACKEND_TOKEN,
  connect: { url: '{base}/event/connect?id={id}', headers: { Authorization: 'Bearer {token}' } },
  message: { seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
  end: {
    by: 'request',
    method: 'DELETE',
    url: '{base}/event/forcedisconnect?id={id}',
    headers: { Authorization: 'Bearer {token}' },
    ok: [200],
  },
  publish: {
    method: 'POST',
    url: '{base}/event/broadcast',
    headers: { Authorization: 'Bearer {token}' },
    body: '{"run":"{run}","seq":{seq},"t":{sentAt},"text":"something new today","sum":"{sum}"}',
    ok: [200],
  },
};
