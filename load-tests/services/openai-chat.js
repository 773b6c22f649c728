// @ts-check
// OpenAI's Chat Completions API, which vLLM, SGLang, LiteLLM, Ollama and most gateways also implement
// (https://platform.openai.com/docs/api-reference/chat-streaming). MODEL names the model; SUBSCRIBE_TOKEN is the key.

/** @type {import('../types/service').ServiceDescription} */
export default {
  name: 'openai-chat',
  token: 'SUBSCRIBE_TOKEN',
  connect: {
    method: 'POST',
    url: '{base}/v1/chat/completions',
    headers: { Authorization: 'Bearer {token}' }, // omitted without a token
    body: `{"model":${JSON.stringify(__ENV.MODEL || 'numbered')},"stream":true,"messages":[{"role":"user","content":"{prompt}"}]}`,
  },
  heartbeat: { comment: true },
  message: {
    per: 'request',
    // The first chunk has only a role, and the chunk with usage has no choices: neither has content.
    // vLLM since 0.12, Ollama and OpenRouter name the reasoning `reasoning`.
    content: [
      'json:$.choices[0].delta.content',
      'json:$.choices[0].delta.reasoning_content',
      'json:$.choices[0].delta.reasoning',
      'json:$.choices[0].delta.refusal',
      'json:$.choices[0].delta.tool_calls',
      'json:$.choices[0].delta.function_call', // before tool_calls
    ],
  },
  end: {
    by: 'event',
    done: { data: '[DONE]' },
    failed: [{ json: '$.error' }, { event: 'error' }],
    incomplete: [
      { json: '$.choices[0].finish_reason', is: 'length' },
      { json: '$.choices[0].finish_reason', is: 'content_filter' },
      { json: '$.choices[0].finish_reason', is: 'abort' }, // vLLM and SGLang: the request was canceled
    ],
  },
};
