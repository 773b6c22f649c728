// @ts-check
// django-eventstream 5.3.4 (PyPI). From its README and django_eventstream/views.py, utils.py, storage.py. The
// URL is that of the README: path('events/<channel>/', include(django_eventstream.urls)).
//
// The library publishes from Python alone (send_event). POST /publish/ is a view of the project under test that
// calls send_event(channel, 'message', the JSON of the request).

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'django-eventstream',
  connect: { url: '{base}/events/{topic}/' },
  // views.py, stream: after 20 s without an event `event: keep-alive` with an empty `data:`.
  heartbeat: { event: 'keep-alive', every: 20 },
  // stream-open, at the start of each stream, and stream-error are no messages. `id:` is `channel:n`, if there
  // is a storage; the number that was published is in the data with every storage.
  message: { event: 'message', seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
  end: { by: 'client' },
  // eventrequest.py reads Last-Event-ID; events that the storage has no more are told by stream-reset. Without a
  // storage nothing is resumed, and nothing said.
  resume: { by: 'header', gap: { event: 'stream-reset' } },
  publish: {
    method: 'POST',
    url: '{base}/publish/{topic}',
    body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}',
  },
};
