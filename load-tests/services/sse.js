// @ts-check
// Any event stream: BACKEND_URL is its whole URL. Streams are held, and their ends and silences are seen;
// nothing is counted, since nothing says what a message is. To count, copy this file and add to it:
// docs/services.md.
//
// From the HTML standard, 9.2.6 and 9.2.7: a comment keeps a stream alive, `Last-Event-ID` resumes it.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'sse',
  token: () => __ENV.SUBSCRIBE_TOKEN || '',
  connect: {
    url: '{base}',
    headers: { Authorization: 'Bearer {token}' }, // left out without a token
  },
  heartbeat: { comment: true },
  message: {},
  end: { by: 'client' },
  resume: { by: 'header' },
};
