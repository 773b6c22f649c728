// @ts-check
// A2A, the protocol between agents: message/stream over JSON-RPC (https://a2a-protocol.org/latest/specification/, 7.2). The
// URL of the agent is the base. The key is SUBSCRIBE_TOKEN.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'a2a',
  token: 'SUBSCRIBE_TOKEN',
  connect: {
    method: 'POST',
    url: '{base}',
    headers: { Authorization: 'Bearer {token}' },
    body: '{"jsonrpc":"2.0","id":"{id}","method":"message/stream","params":{"message":{"kind":"message","messageId":"{id}","role":"user","parts":[{"kind":"text","text":"{prompt}"}]}}}',
  },
  heartbeat: { comment: true },
  message: { per: 'request', content: ['json:$.result.artifact', 'json:$.result.status.message', 'json:$.result.parts'] },
  end: {
    by: 'event',
    done: [{ json: '$.result.final', is: 'true' }, { json: '$.result.kind', is: 'message' }],
    failed: [{ json: '$.error' }, { json: '$.result.status.state', is: 'failed' }],
    incomplete: [{ json: '$.result.status.state', is: 'canceled' }, { json: '$.result.status.state', is: 'rejected' }],
  },
};
