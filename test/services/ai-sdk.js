// @ts-check
// Describes the UI message stream of Vercel's AI SDK (https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol). The request has
// the format of useChat. The server is test/services/ai-sdk/server.js.

/** @type {import('../../load-tests/types/service').ServiceDescription} */
export default {
  name: 'ai-sdk',
  connect: {
    method: 'POST',
    url: '{base}/api/chat',
    body: '{"id":"{id}","messages":[{"id":"{id}","role":"user","parts":[{"type":"text","text":"{prompt}"}]}]}',
  },
  message: { per: 'request', content: 'json:$.delta' }, // of text-delta and reasoning-delta
  end: {
    by: 'event',
    done: { data: '[DONE]' },
    failed: [{ json: '$.type', is: 'error' }, { json: '$.type', is: 'abort' }],
    incomplete: { json: '$.finishReason', is: 'length' },
  },
};
