// @ts-check
// Finite: requests whose responses are event streams that end by themselves, such as responses of language models. Each
// response is checked up to its terminal event.
//
//   bin/soak run finite                                        with the numbered model of this repository
//   bin/soak run finite --service openai-chat --backend-url http://HOST --rate 20 --seconds 60

import { finite, profile, suite, url } from 'k6/x/soak';

import { SAMPLES_BUFFER } from '../lib/config.js';
import { loadService } from '../lib/service.js';

const full = {
  SERVICE: 'openai-chat',
  RATE: 20,
  CONCURRENCY: 0,
  SECONDS: 300,
  ARRIVAL: 'constant',
  SEED: 1,
  MAX_IN_FLIGHT: 1000,
  PROMPTS: '',
  FIRST_TIMEOUT: 300,
  IDLE_TIMEOUT: 60,
  LINGER: 5,
  DRAIN: 60,
  MAX_TTFT_MS: 0,
  MAX_GAP_MS: 0,
  MAX_TOTAL_S: 0,
  MIN_GOODPUT: 100,
  MAX_REFUSED: 0,
  ABANDON: 0,
  ABANDON_AFTER: 5,
  ABANDON_BY: 'fin',
  GAUGE: '',
  MODEL_URL: '',
  ACCEPT_ENCODING: 'none',
  HTTP_VERSION: 'auto',
};

const chosen = profile('finite', { full, smoke: { ...full, SECONDS: 10, DRAIN: 10 } });
const { values } = chosen;
const { service, description, customToken } = loadService(values.SERVICE);

if (service.endBy !== 'event') {
  throw new Error(`SERVICE must have streams that end by themselves (end.by: 'event'), got "${values.SERVICE}"; soak it with \`soak run\``);
}
if (values.CONCURRENCY === 0 && values.RATE === 0) {
  throw new Error('RATE or CONCURRENCY must be over 0, got 0 for both');
}

/** Whether the load is a closed model. */
const closed = values.CONCURRENCY > 0;
const prompts = values.PROMPTS === '' ? [] : promptsOf(values.PROMPTS, open(values.PROMPTS));

suite({
  name: 'finite',
  profile: chosen.name,
  parameters: chosen.parameters,
  splitBy: ['scenario'],
  stages: [{
    name: 'finite', title: closed ? `${values.CONCURRENCY} at a time` : `${values.RATE}/s`, kind: 'load', start: 0, seconds: values.SECONDS,
    ...(closed ? { concurrency: values.CONCURRENCY } : { rate: values.RATE }),
  }],
});

export const options = {
  scenarios: {
    finite: { executor: 'per-vu-iterations', vus: chosen.runners, iterations: 1, maxDuration: `${values.SECONDS + values.DRAIN + 10}s`, gracefulStop: '5s' },
  },
  metricSamplesBufferSize: SAMPLES_BUFFER,
  systemTags: ['scenario', 'status', 'error_code', 'check'],
  ext: { soak: { service: description, customToken, connections: closed ? values.CONCURRENCY : values.MAX_IN_FLIGHT } },
};

/**
 * @param {string} file
 * @param {string} text one JSON value per line
 * @returns {string[]}
 */
function promptsOf(file, text) {
  const lines = text.split('\n').map((line) => line.trim()).filter((line) => line !== '');
  if (lines.length === 0) {
    throw new Error(`PROMPTS must have one JSON value per line, such as "Tell me a story.", got no line in "${file}"`);
  }
  return lines.map((line, i) => {
    try {
      const value = JSON.parse(line);
      return typeof value === 'string' ? value : line;
    } catch (e) {
      throw new Error(`PROMPTS must have one JSON value per line, with a text in quotes, got other text in line ${i + 1} of "${file}"`, { cause: e });
    }
  });
}

export default async function () {
  await finite(service, {
    baseUrl: url('BACKEND_URL'),
    prompts,
    rate: closed ? 0 : values.RATE,
    concurrency: values.CONCURRENCY,
    seconds: values.SECONDS,
    poisson: values.ARRIVAL === 'poisson',
    seed: values.SEED,
    maxInFlight: values.MAX_IN_FLIGHT,
    firstTimeout: values.FIRST_TIMEOUT,
    idleTimeout: values.IDLE_TIMEOUT,
    linger: values.LINGER,
    drain: values.DRAIN,
    maxFirst: values.MAX_TTFT_MS,
    maxGap: values.MAX_GAP_MS,
    maxTotal: values.MAX_TOTAL_S,
    abandon: values.ABANDON / 100,
    abandonAfter: values.ABANDON_AFTER,
    abandonBy: /** @type {'fin' | 'reset' | 'vanish'} */ (values.ABANDON_BY),
    acceptEncoding: values.ACCEPT_ENCODING,
    httpVersion: values.HTTP_VERSION,
  });
}
