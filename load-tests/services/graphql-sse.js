// @ts-check
// GraphQL over SSE, distinct connections mode (https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md). The
// prompt is the query: an operation or a subscription that ends by itself.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'graphql-sse',
  token: 'SUBSCRIBE_TOKEN',
  connect: {
    method: 'POST',
    url: '{base}/graphql/stream',
    headers: { Authorization: 'Bearer {token}' },
    body: '{"query":"{prompt}"}',
  },
  heartbeat: { comment: true },
  message: { per: 'request', event: 'next', content: 'json:$.data' },
  end: { by: 'event', done: { event: 'complete' }, failed: { json: '$.errors' } },
};
