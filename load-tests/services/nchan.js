// @ts-check
// nchan, the pub/sub module of nginx, 1.3.6 (Debian: libnginx-mod-nchan). Sources: its README
// and src/subscribers/eventsource.c at v1.3.6. Required configuration of nginx:
//
//   location ~ ^/sub/(.+)$ { nchan_subscriber eventsource; nchan_channel_id $1;
//                            nchan_eventsource_ping_interval 30;           # disabled by default
//                            nchan_subscriber_first_message newest; }
//   location ~ ^/pub/(.+)$ { nchan_publisher; nchan_channel_id $1; nchan_message_buffer_length 1000; }

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'nchan',
  // README, "EventSource": nchan recognizes EventSource subscribers by this Accept.
  connect: { url: '{base}/sub/{topic}', headers: { Accept: 'text/event-stream' } },
  // ping_ev_handler: `event: ping`, without data unless nchan_eventsource_ping_data is set.
  heartbeat: { event: 'ping', every: 30 },
  // es_respond_message: the payload is as published; `id:` is `time:n`, not a sequence number.
  message: { seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
  end: { by: 'client' },
  // README, "EventSource": nchan resumes from the message buffer of the channel. It does not report messages that have
  // left the buffer.
  resume: { by: 'header' },
  publish: {
    method: 'POST',
    url: '{base}/pub/{topic}',
    body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}',
    ok: [201, 202], // README, "Publisher Endpoints": with and without a subscriber
  },
};
