// @ts-check
// The soak with streams that are cut: by the runner itself, in Go (k6/soak/cutter.go), as CUTS_PER_SECOND, CUTS, PAUSE and
// SEED say. This file names the suite; all else is the soak's.
//
//   bin/soak run resume

import { profile, suite } from 'k6/x/soak';

export { default, options, setup } from './connectionTest.js';

suite({ name: 'resume', profile: profile({ full: {}, smoke: {} }).name, parameters: {}, splitBy: ['scenario'], stages: [] });
