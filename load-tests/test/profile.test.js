// @ts-check
// lib/profile.js: a profile gives each setting a default, and the environment changes it.

import { profile } from '../lib/profile.js';
import { equal, given, runInInit, throws, thresholds } from './cases.js';

export const options = { thresholds };

const chosen = () => profile({ full: { RATE: 100, STAGES: [10, 20] }, smoke: { RATE: 5, STAGES: [1] } });

export default runInInit({
  'full is the default': () => {
    equal(chosen(), { name: 'full', values: { RATE: 100, STAGES: [10, 20] }, parameters: { RATE: '100', STAGES: '10,20' } });
  },
  'PROFILE chooses another': () => {
    equal(given({ PROFILE: 'smoke' }, chosen), { name: 'smoke', values: { RATE: 5, STAGES: [1] }, parameters: { RATE: '5', STAGES: '1' } });
  },
  'a variable changes a value of either, and the shard says so': () => {
    for (const PROFILE of ['smoke', 'full']) {
      const { values, parameters } = given({ PROFILE, RATE: '7.5', STAGES: '3,4' }, chosen);
      equal(values, { RATE: 7.5, STAGES: [3, 4] });
      equal(parameters, { RATE: '7.5', STAGES: '3,4' });
    }
  },
  'there is no third one': () => throws(() => given({ PROFILE: 'tiny' }, chosen), 'PROFILE is "tiny": it must be smoke or full.'),
  'no value is below 0': () => {
    throws(() => given({ RATE: '-1' }, chosen), 'RATE is -1: it must not be below 0.');
    throws(() => given({ STAGES: '1,-2' }, chosen), 'STAGES is "1,-2"');
  },
});
