// A server with Vercel's AI SDK, from its documentation for Node (https://ai-sdk.dev/cookbook/api-servers/node-http-server).
// It sends requests to an upstream with OpenAI's chat API, and responds with the UI message stream of the AI SDK.
import { createServer } from 'node:http';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { convertToModelMessages, streamText } from 'ai';

const [host, port, baseURL] = process.argv.slice(2);
const upstream = createOpenAICompatible({ name: 'upstream', baseURL });

async function text(request) {
  let out = '';
  for await (const part of request.setEncoding('utf8')) {
    out += part;
  }
  return out;
}

createServer(async (request, response) => {
  if (request.method !== 'POST') {
    response.writeHead(404).end();
    return;
  }
  const { messages } = JSON.parse(await text(request));
  const result = streamText({ model: upstream('numbered'), messages: await convertToModelMessages(messages) });
  result.pipeUIMessageStreamToResponse(response);
}).listen(Number(port), host);
