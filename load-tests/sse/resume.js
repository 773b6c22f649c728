// @ts-check
// The soak with streams that the runner cuts in Go (k6/soak/cutter.go), by CUTS_PER_SECOND, CUTS, PAUSE and SEED.
// This file only names the suite.
//
//   bin/soak run resume

import { profile, suite } from 'k6/x/soak';

export { default, options, setup } from './connectionTest.js';

suite({ name: 'resume', profile: profile({ full: {}, smoke: {} }).name, parameters: {}, splitBy: ['scenario'], stages: [] });
