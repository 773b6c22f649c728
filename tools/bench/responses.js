// @ts-check
// Requests responses of the numbered model by k6/http, which reads whole bodies without checking them.

import exec from 'k6/execution';
import http from 'k6/http';

export default () => {
  const content = `soak id=k-${exec.scenario.iterationInTest}`;
  const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content }] });
  const { status } = http.post(`${__ENV.MODEL_URL}/v1/chat/completions`, body);
  if (status !== 200) {
    exec.test.abort(`unexpected status ${status}`);
  }
};

/** @param {{ metrics: { http_reqs: { values: { count: number } } } }} data */
export const handleSummary = (data) => ({ [__ENV.SUMMARY]: JSON.stringify({ responses: data.metrics.http_reqs.values.count }) });
