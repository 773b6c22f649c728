// @ts-check
// The Model Context Protocol over streamable HTTP: the response to a POST is a stream that ends with the JSON-RPC
// response (https://modelcontextprotocol.io/specification/2025-06-18/basic/transports). Each client starts with
// initialize. Its further requests call TOOL with the prompt, and send the id of the session if the server returned
// one.

const rpc = (/** @type {number} */ id, /** @type {string} */ method, /** @type {object} */ params) => JSON.stringify({ jsonrpc: '2.0', id, method, params });

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'mcp',
  token: 'SUBSCRIBE_TOKEN',
  connect: {
    method: 'POST',
    url: '{base}/mcp',
    headers: {
      Accept: 'application/json, text/event-stream',
      Authorization: 'Bearer {token}',
      'Content-Type': 'application/json',
      'MCP-Protocol-Version': '2025-06-18',
      'Mcp-Session-Id': '{client}',
    },
    client: 'header:Mcp-Session-Id',
  },
  body: (n, i, _session, prompt) => (i === 0
    ? rpc(n, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'sse-soak', version: '1' } })
    : rpc(n, 'tools/call', { name: __ENV.TOOL || 'echo', arguments: { message: prompt }, _meta: { progressToken: n } })),
  heartbeat: { data: '' }, // since 2025-11-25 a stream may begin with an event that has only an id
  message: { per: 'request', content: ['json:$.params', 'json:$.result'] }, // notifications, and the result
  end: {
    by: 'event',
    done: { json: '$.result' },
    failed: [{ json: '$.error' }, { json: '$.result.isError', is: 'true' }],
  },
};
