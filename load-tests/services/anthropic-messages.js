// @ts-check
// Anthropic's Messages API (https://docs.anthropic.com/en/api/messages-streaming). MODEL names the model;
// SUBSCRIBE_TOKEN is the key.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'anthropic-messages',
  token: 'SUBSCRIBE_TOKEN',
  connect: {
    method: 'POST',
    url: '{base}/v1/messages',
    headers: { 'x-api-key': '{token}', 'anthropic-version': '2023-06-01' },
    body: `{"model":${JSON.stringify(__ENV.MODEL || 'numbered')},"max_tokens":4096,"stream":true,"messages":[{"role":"user","content":"{prompt}"}]}`,
  },
  heartbeat: { event: 'ping' },
  message: {
    per: 'request',
    // A tool call without arguments has only its name.
    content: ['json:$.delta.text', 'json:$.delta.thinking', 'json:$.delta.partial_json', 'json:$.content_block.name'],
  },
  end: {
    by: 'event',
    done: { event: 'message_stop' },
    failed: { event: 'error' },
    incomplete: [{ json: '$.delta.stop_reason', is: 'max_tokens' }, { json: '$.delta.stop_reason', is: 'refusal' }],
  },
};
