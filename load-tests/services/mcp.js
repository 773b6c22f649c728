// @ts-check
// The Model Context Protocol over streamable HTTP: a POST that is answered as a stream, which the JSON-RPC response ends
// (https://modelcontextprotocol.io/specification/2025-06-18/basic/transports). TOOL names the tool that is called with the
// prompt; MCP_SESSION is the id of a session, of a server that wants one.

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
      'MCP-Protocol-Version': '2025-06-18',
      ...(__ENV.MCP_SESSION ? { 'Mcp-Session-Id': __ENV.MCP_SESSION } : {}),
    },
    body: `{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{"name":${JSON.stringify(__ENV.TOOL || 'echo')},"arguments":{"message":"{prompt}"},"_meta":{"progressToken":"{id}"}}}`,
  },
  heartbeat: { comment: true },
  message: { per: 'request', content: ['json:$.params', 'json:$.result'] }, // notifications, and the result
  end: {
    by: 'event',
    done: { json: '$.result' },
    failed: [{ json: '$.error' }, { json: '$.result.isError', is: 'true' }],
  },
};
