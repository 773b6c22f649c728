// @ts-check
// AG-UI, the protocol between an agent and its user interface (https://docs.ag-ui.com/concepts/events). BACKEND_URL is
// the URL of the agent; SUBSCRIBE_TOKEN is the key.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'ag-ui',
  token: 'SUBSCRIBE_TOKEN',
  connect: {
    method: 'POST',
    url: '{base}',
    headers: { Authorization: 'Bearer {token}' },
    body: '{"threadId":"{id}","runId":"{id}","state":{},"messages":[{"id":"{id}","role":"user","content":"{prompt}"}],"tools":[],"context":[],"forwardedProps":{}}',
  },
  heartbeat: { comment: true },
  message: {
    per: 'request',
    content: [
      'json:$.delta', // of TEXT_MESSAGE_CONTENT, THINKING_TEXT_MESSAGE_CONTENT, TOOL_CALL_ARGS
      'json:$.toolCallName', // of TOOL_CALL_START: a tool call may have no arguments
      'json:$.content', // of TOOL_CALL_RESULT
      'json:$.messages', // of MESSAGES_SNAPSHOT: an agent may send only whole messages
      'json:$.result', // of RUN_FINISHED
    ],
  },
  end: {
    by: 'event',
    done: { json: '$.type', is: 'RUN_FINISHED' },
    failed: { json: '$.type', is: 'RUN_ERROR' },
  },
};
