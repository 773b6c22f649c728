// @ts-check
// Resume: the soak with disconnects by the runner in Go (k6/soak/cutter.go). CUTS_PER_SECOND, CUTS, PAUSE and SEED
// control them. This file only names the suite.
//
//   bin/soak run resume

import { profile, suite } from 'k6/x/soak';

export { default, options, setup } from './connectionTest.js';

suite({ name: 'resume', profile: profile('resume', { full: {}, smoke: {} }).name, parameters: {}, splitBy: ['scenario'], stages: [] });
