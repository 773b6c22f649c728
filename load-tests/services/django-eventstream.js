// @ts-check
// django-eventstream 5.3.4 (PyPI). Sources: its README and django_eventstream/views.py, utils.py, storage.py. The
// URL comes from the README: path('events/<channel>/', include(django_eventstream.urls)).
//
// Only Python code can publish (send_event). POST /publish/ is a view of the project under test that calls
// send_event(channel, 'message', the JSON of the request).

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'django-eventstream',
  connect: { url: '{base}/events/{topic}/' },
  // views.py, stream: after 20 s without an event, the view sends `event: keep-alive` with an empty `data:`.
  heartbeat: { event: 'keep-alive', every: 20 },
  // stream-open, at the start of each stream, and stream-error are not messages. With a storage, `id:` is
  // `channel:n`. The published number is in the data, with or without a storage.
  message: { event: 'message', seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
  end: { by: 'client' },
  // eventrequest.py reads Last-Event-ID. stream-reset reports that the storage no longer has the events. Without a
  // storage, streams do not resume, and no event reports the loss.
  resume: { by: 'header', gap: { event: 'stream-reset' } },
  publish: {
    method: 'POST',
    url: '{base}/publish/{topic}',
    body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}',
  },
};
