// @ts-check
// A2A 1.0, the protocol between agents: SendStreamingMessage over JSON-RPC
// (https://a2a-protocol.org/v1.0.0/specification/, 9.4). BACKEND_URL is the URL of the agent; SUBSCRIBE_TOKEN is the
// key.

/**
 * Returns conditions for tasks in one of these states, which a status update or a whole task reports.
 * @param {...string} states
 */
const state = (...states) => states.flatMap((name) => ['$.result.statusUpdate', '$.result.task'].map(
  (place) => ({ json: /** @type {`$${string}`} */ (`${place}.status.state`), is: `TASK_STATE_${name}` }),
));

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'a2a',
  token: 'SUBSCRIBE_TOKEN',
  connect: {
    method: 'POST',
    url: '{base}',
    headers: { Authorization: 'Bearer {token}', 'A2A-Version': '1.0' },
    body: '{"jsonrpc":"2.0","id":"{id}","method":"SendStreamingMessage","params":{"message":{"messageId":"{id}","role":"ROLE_USER","parts":[{"text":"{prompt}"}]}}}',
  },
  heartbeat: { comment: true },
  message: {
    per: 'request',
    content: ['json:$.result.artifactUpdate.artifact.parts', 'json:$.result.statusUpdate.status.message', 'json:$.result.message', 'json:$.result.task.artifacts', 'json:$.result.task.status.message'],
  },
  end: {
    by: 'event',
    // The server closes the stream when the task has ended or needs input. An answer can also be a single message.
    done: [{ json: '$.result.message' }, ...state('COMPLETED', 'CANCELED', 'REJECTED', 'INPUT_REQUIRED', 'AUTH_REQUIRED')],
    failed: [{ json: '$.error' }, ...state('FAILED')],
    incomplete: state('CANCELED', 'REJECTED', 'INPUT_REQUIRED', 'AUTH_REQUIRED'),
  },
};
