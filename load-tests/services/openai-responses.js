// @ts-check
// OpenAI's Responses API (https://platform.openai.com/docs/api-reference/responses-streaming). Each event has a
// sequence_number. MODEL names the model; SUBSCRIBE_TOKEN is the key.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'openai-responses',
  token: 'SUBSCRIBE_TOKEN',
  connect: {
    method: 'POST',
    url: '{base}/v1/responses',
    headers: { Authorization: 'Bearer {token}' },
    body: `{"model":${JSON.stringify(__ENV.MODEL || 'numbered')},"stream":true,"input":"{prompt}"}`,
  },
  heartbeat: { data: '[DONE]' }, // Open Responses and gateways send it after the terminal event
  message: {
    per: 'request',
    seq: 'json:$.sequence_number',
    content: [
      'json:$.delta', // of response.output_text.delta, .reasoning_summary_text.delta, .function_call_arguments.delta
      'json:$.partial_image_b64', // of response.image_generation_call.partial_image
    ],
  },
  end: {
    by: 'event',
    done: [{ event: 'response.completed' }, { event: 'response.incomplete' }],
    // A response.completed whose status is failed, cancelled or incomplete is not complete.
    failed: [
      { event: 'response.failed' }, { json: '$.response.status', is: 'failed' },
      { event: 'response.cancelled' }, { json: '$.response.status', is: 'cancelled' }, { event: 'error' },
    ],
    incomplete: [{ event: 'response.incomplete' }, { json: '$.response.status', is: 'incomplete' }],
    stated: { event: 'response.output_text.done', of: 'response.output_text.delta', text: 'json:$.text' },
  },
};
