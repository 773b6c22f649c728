// @ts-check
// Reads every URL of internal/plan/testdata/urls.json as the scripts do, and fails where Go makes another of it.

import { url } from '../../../load-tests/lib/settings.js';

/** @type {{url: string, normal?: string, says?: string}[]} */
const cases = JSON.parse(open('../../../internal/plan/testdata/urls.json'));
for (const { url: text, normal, says } of cases) {
  __ENV.URL_UNDER_TEST = text;
  let got;
  try {
    got = url('URL_UNDER_TEST');
  } catch (error) {
    got = String(error);
  }
  if (says === undefined ? got !== normal : !got.includes(says)) {
    throw new Error(`${text} is ${got}, not ${normal ?? says}`);
  }
}
if (cases.length < 20) {
  throw new Error('the URLs were not read');
}

export default function () {}
