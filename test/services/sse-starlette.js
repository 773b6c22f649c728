// @ts-check
// Describes test/services/python/starlette_events.py, an application with the library sse-starlette 3.7.0 (PyPI). The library
// itself defines only the heartbeat (EventSourceResponse in sse_starlette/sse.py).

/** @type {import('../../load-tests/types/service').ServiceDescription} */
export default {
  name: 'sse-starlette',
  connect: { url: '{base}/events/{topic}' },
  // A comment every 15 s (DEFAULT_PING_INTERVAL), even if there are messages. Lines end with \r\n.
  heartbeat: { comment: true, every: 15 },
  message: { event: 'update', seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
  end: { by: 'client' },
  resume: { by: 'none' }, // neither the library nor the application stores messages
  publish: {
    url: '{base}/publish/{topic}',
    body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}',
    ok: [202],
  },
};
