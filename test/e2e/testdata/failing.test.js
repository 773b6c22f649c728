// @ts-check
// A test script like those of load-tests/test, with one case that fails.

import { equal, run, thresholds } from '../../../load-tests/test/cases.js';

export const options = { thresholds };

export default run({
  'one is one': () => equal(1, 1),
  'one is two': async () => equal(1, 2),
});
