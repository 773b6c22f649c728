// @ts-check
// lib/config.js and lib/service.js: the errors of a script for invalid settings.

import { checkOptions, requireOneRunner, streamConfig } from '../lib/config.js';
import { loadService } from '../lib/service.js';
import { equal, runInInit, throws, thresholds, withEnvironment } from './cases.js';

export const options = { thresholds };

const BACKEND_URL = 'http://service:8080';
const { service } = loadService();

/** The properties of a configuration that checkOptions reads. */
const soak = (/** @type {object} */ changed) => /** @type {any} */ ({ connections: 0, connectionsPerVU: 1, seconds: 3600, endTimeout: 90, ...changed });

/** The options of `k6 run --vus V --iterations V --duration D`. */
const laptop = (/** @type {object} */ changed) => ({
  default: { executor: 'shared-iterations', vus: 10, iterations: 10, maxDuration: '1h0m0s', gracefulStop: '30s', ...changed },
});

export default runInInit({
  'settings of a suite take precedence': () => {
    const config = withEnvironment({ BACKEND_URL, PREFIX: 'p-', SECONDS: '9', RECONNECT: '1', BACKEND_TOKEN: 't' }, () => streamConfig(service, { connections: 5, seconds: 60, lateMs: 500 }));
    equal([config.idleTimeout, config.lateMs, config.prefix, config.reconnect, config.seconds], [37500, 500, 'p-', false, 60]);
    equal(config.headers, { Authorization: 'Bearer t' });
  },
  'the description of noops is the default and has a name': () => {
    for (const env of /** @type {Record<string, string>[]} */ ([{}, { SERVICE: '' }, { SERVICE: 'noop' }])) {
      const { service: loaded, customToken } = withEnvironment({ BACKEND_URL, ...env }, loadService);
      equal([loaded.name, loaded.every, loaded.endBy, customToken], ['noop', 15, 'request', false]);
    }
  },
  'the error of an unknown service lists the services': () => {
    throws(() => withEnvironment({ SERVICE: 'nchann' }, loadService), 'SERVICE must be the path of a .js file, or one of a2a, ag-ui, anthropic-messages, centrifugo, ');
    throws(() => withEnvironment({ SERVICE: '/nosuch/mine.js' }, loadService), 'SERVICE must be the path of an existing file, got "/nosuch/mine.js"');
    throws(() => withEnvironment({ SERVICE: 'C:\\nosuch\\mine.js' }, loadService), 'SERVICE must be the path of an existing file, got "C:\\nosuch\\mine.js"');
    throws(() => withEnvironment({ SERVICE: 'mine.js' }, loadService), 'SERVICE must be the absolute path of a module, got "mine.js"');
    throws(() => withEnvironment({ SERVICE: '../lib/plan' }, loadService), 'SERVICE must be a module with a description');
  },
  'a script that supports only noops rejects other services': () => {
    throws(() => withEnvironment({ BACKEND_URL, SERVICE: 'nchan' }, () => streamConfig(service, { connections: 5, seconds: 60, lateMs: 500 })), 'SERVICE must be noop for this script, got "nchan"');
  },
  'a suite that needs one runner rejects several': () => {
    requireOneRunner('fanout', 1);
    throws(() => requireOneRunner('fanout', 2), 'RUNNERS must be 1 for fanout, which needs the data of all streams, got 2');
  },
  'options of k6 that fit the plan are accepted': () => {
    checkOptions(soak({ seconds: 60, connections: 10 }), laptop({}));
    checkOptions(soak({ seconds: 60 }), laptop({ executor: 'per-vu-iterations', iterations: 1 }));
  },
  'options of k6 that would end streams early or open too few are rejected': () => {
    for (const [config, changed, message] of /** @type {[object, object, string][]} */ ([
      [{}, { executor: 'constant-vus' }, 'the scenario default must have one iteration per virtual user, such as --vus 600 --iterations 600, got the executor constant-vus'],
      [{}, { iterations: 20 }, 'must have one iteration per virtual user, got 20 for 10; write --vus 20'],
      [{ connections: 11 }, {}, 'CONNECTIONS must be at most 10 with the options of k6 (flags, K6_VUS, K6_ITERATIONS or a configuration file), got 11'],
      [{ seconds: 3600 }, { maxDuration: '59m30s' }, 's, for SECONDS=3600 and the end of the streams (END_TIMEOUT=90), got 3600 s; write --duration'],
      [{ seconds: 601 }, { maxDuration: undefined, gracefulStop: undefined }, 's, for SECONDS=601 and the end of the streams (END_TIMEOUT=90), got 630 s; write --duration'],
    ])) {
      throws(() => checkOptions(soak(config), laptop(changed)), message);
    }
  },
});
