// @ts-check
// sse-starlette 3.7.0 (PyPI) is a library: what a service does with it is the application's. This describes
// test/services/python/starlette_events.py. From sse_starlette/sse.py, EventSourceResponse.

/** @type {import('../../load-tests/types/service').ServiceDescription} */
export default {
  name: 'sse-starlette',
  connect: { url: '{base}/events/{topic}' },
  // _ping: a comment every 15 s (DEFAULT_PING_INTERVAL), whether there are messages or not. Lines end with \r\n.
  heartbeat: { comment: true, every: 15 },
  message: { event: 'update', seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
  end: { by: 'client' },
  resume: { by: 'none' }, // the library keeps nothing, and neither does the application
  publish: {
    url: '{base}/publish/{topic}',
    body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}',
    ok: [202],
  },
};
