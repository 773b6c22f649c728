// @ts-check
// Any event stream: BACKEND_URL is its complete URL. A run checks that streams open, stay open and are not silent for
// too long. It does not check messages. To check them, copy this file and set `message` (docs/services.md).
//
// HTML standard, 9.2.6 and 9.2.7: a comment keeps a stream alive, and `Last-Event-ID` resumes it.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'sse',
  token: () => __ENV.SUBSCRIBE_TOKEN || '',
  connect: {
    url: '{base}',
    headers: { Authorization: 'Bearer {token}' }, // omitted without a token
  },
  heartbeat: { comment: true },
  message: 'unchecked',
  end: { by: 'client' },
  resume: { by: 'header' },
};
