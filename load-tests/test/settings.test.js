// @ts-check
// lib/settings.js, lib/config.js and lib/service.js: what a script makes of its environment variables, and what it says of
// wrong ones. test/e2e/testdata/urls.js has the URLs.

import { DISCONNECT_LEAD, heedOptions, oneRunner, soakConfig, streamConfig } from '../lib/config.js';
import { loadService } from '../lib/service.js';
import { authorization, list, number, url, whole } from '../lib/settings.js';
import { equal, given, runInInit, throws, thresholds } from './cases.js';

export const options = { thresholds };

const BACKEND_URL = 'http://service:8080';
const { service } = loadService();
const soak = (/** @type {Record<string, string>} */ env = {}) => given({ BACKEND_URL, ...env }, () => soakConfig(service));

/** The options of `k6 run --vus V --iterations V --duration D`. */
const laptop = (/** @type {object} */ changed) => ({
  default: { executor: 'shared-iterations', vus: 10, iterations: 10, maxDuration: '1h0m0s', gracefulStop: '30s', ...changed },
});

export default runInInit({
  'a number has a default, for an empty variable too': () => {
    equal(number('LIMIT', 1.5), 1.5);
    equal(given({ LIMIT: '' }, () => number('LIMIT', 1.5)), 1.5);
    equal(given({ LIMIT: '2.5' }, () => number('LIMIT', 1.5)), 2.5);
  },
  'what is no number is refused by its name': () => {
    for (const text of ['x', '1s', ' ', 'Infinity', '1,5']) {
      throws(() => given({ LIMIT: text }, () => number('LIMIT', 1)), `LIMIT is "${text}": it must be a number.`);
    }
    throws(() => given({ LIMIT: '1.5' }, () => whole('LIMIT', 1)), 'LIMIT is "1.5": it must be a whole number.');
  },
  'a list is of whole numbers over 0': () => {
    equal(list('LEVELS', [1, 2]), [1, 2]);
    equal(given({ LEVELS: '5, 10' }, () => list('LEVELS', [1])), [5, 10]);
    for (const text of ['5,0', '5,-1', '5,1.5']) {
      throws(() => given({ LEVELS: text }, () => list('LEVELS', [1])), `LEVELS is "${text}": it must be whole numbers over 0`);
    }
    throws(() => given({ LEVELS: '5,' }, () => list('LEVELS', [1])), 'LEVELS is "5,": it must be whole numbers over 0');
  },
  'a URL is missing, or has one form': () => {
    throws(() => given({ BACKEND_URL: '' }, () => url('BACKEND_URL')), 'BACKEND_URL is missing: say which service to test');
    equal(given({ BACKEND_URL: ' HTTP://Host:80/a// ' }, () => url('BACKEND_URL')), 'http://host:80/a');
  },
  'a token becomes a header': () => {
    equal(authorization(), {});
    equal(given({ BACKEND_TOKEN: 'secret' }, authorization), { Authorization: 'Bearer secret' });
  },

  'a soak has the defaults of the README': () => {
    const config = /** @type {Record<string, unknown>} */ (soak());
    for (const [name, value] of Object.entries({
      backendUrl: BACKEND_URL, connections: 0, connectionsPerVU: 1, seconds: 3600, noopInterval: 15, idleTimeout: 37500,
      prefix: '', testid: '', runners: 1, lateMs: 1000, endTimeout: 22.5, reconnect: false, headers: {},
    })) {
      equal(config[name], value, name);
    }
  },
  'a soak takes what it is given': () => {
    const config = soak({ CONNECTIONS: '600', SECONDS: '60', PREFIX: 'a-', RECONNECT: '1', BACKEND_TOKEN: 't', END_TIMEOUT: '3' });
    equal([config.connections, config.seconds, config.prefix], [600, 60, 'a-']);
    equal([config.reconnect, config.headers, config.endTimeout], [true, { Authorization: 'Bearer t' }, 3]);
    equal(soak({ RECONNECT: 'true' }).reconnect, true);
    equal(soak({ RECONNECT: '0' }).reconnect, false);
  },
  'a soak says what is out of bounds': () => {
    throws(() => soak({ SECONDS: String(DISCONNECT_LEAD) }), `SECONDS is ${DISCONNECT_LEAD}: it must be over ${DISCONNECT_LEAD}`);
    throws(() => soak({ NOOP_INTERVAL: '0' }), 'NOOP_INTERVAL is 0: it must be over 0');
    throws(() => soak({ CONNECTIONS: '-1' }), 'CONNECTIONS is -1');
    throws(() => soak({ CONNECTIONS_PER_VU: '0' }), 'CONNECTIONS_PER_VU is 0: it must be at least 1');
    throws(() => soak({ END_TIMEOUT: '-1' }), 'END_TIMEOUT is -1');
    throws(() => soak({ LATE_MS: '0' }), 'LATE_MS is 0: it must be at least 1 ms');
    throws(() => soak({ RECONNECT: 'yes' }), 'RECONNECT is "yes": it must be 1 or 0');
    throws(() => soak({ RUNNERS: '1.5' }), 'RUNNERS is "1.5": it must be a whole number');
  },
  'what a suite states takes precedence': () => {
    const config = given({ BACKEND_URL, PREFIX: 'p-' }, () => streamConfig(service, { connections: 5, seconds: 60, lateMs: 500 }));
    equal([config.idleTimeout, config.lateMs, config.prefix, config.reconnect], [37500, 500, 'p-', false]);
    const own = given({ BACKEND_URL, SECONDS: '1', RECONNECT: '1' }, () => streamConfig(service, { connections: 5, seconds: 60, lateMs: 500 }));
    equal([own.seconds, own.reconnect], [60, false], 'what a suite says itself');
  },
  'a soak of noops, by name or by default, has that description': () => {
    for (const env of /** @type {Record<string, string>[]} */ ([{}, { SERVICE: '' }, { SERVICE: 'noop' }])) {
      const { service: loaded, ownToken } = given({ BACKEND_URL, ...env }, loadService);
      equal([loaded.name, loaded.every, loaded.endBy, ownToken], ['noop', 15, 'request', false]);
    }
  },
  'a service that is not there is refused with those that are': () => {
    throws(() => given({ SERVICE: 'nchann' }, loadService), 'SERVICE is "nchann": load-tests/services has centrifugo, django-eventstream, ');
    throws(() => given({ SERVICE: '/nosuch/mine.js' }, loadService), 'SERVICE is "/nosuch/mine.js": there is no such file.');
    throws(() => given({ SERVICE: 'C:\\nosuch\\mine.js' }, loadService), 'SERVICE is "C:\\nosuch\\mine.js": there is no such file.');
    throws(() => given({ SERVICE: 'mine.js' }, loadService), 'SERVICE is "mine.js": write the whole path');
    throws(() => given({ SERVICE: '../lib/settings' }, loadService), 'the module has no description');
  },
  'a script that knows noops only refuses other services': () => {
    throws(() => given({ BACKEND_URL, SERVICE: 'nchan' }, () => streamConfig(service, { connections: 5, seconds: 60, lateMs: 500 })), 'SERVICE is "nchan"');
  },
  'a suite that needs one runner refuses more': () => {
    oneRunner('fanout');
    throws(() => given({ RUNNERS: '2' }, () => oneRunner('fanout')), 'RUNNERS is 2: fanout needs one runner');
  },
  'more streams, and a longer END_TIMEOUT, take longer to end': () => {
    const env = { CONNECTIONS: '1000' };
    equal(soak(env).teardown, Math.ceil(45 + 22.5 + 21));
    equal(soak({ ...env, RUNNERS: '2' }).teardown, Math.ceil(45 + 22.5 + 11));
    equal(soak({ ...env, END_TIMEOUT: '100' }).teardown, 45 + 100 + 21);
  },
  'options of k6 that fit the plan pass': () => {
    heedOptions(soak({ SECONDS: '60', CONNECTIONS: '10' }), laptop({}));
    heedOptions(soak({ SECONDS: '60' }), laptop({ executor: 'per-vu-iterations', iterations: 1 }));
  },
  'options of k6 that would end streams early, or open fewer, are refused': () => {
    for (const [env, changed, says] of /** @type {[Record<string, string>, object, string][]} */ ([
      [{}, { executor: 'constant-vus' }, 'the scenario default is constant-vus: a soak needs a number of iterations'],
      [{}, { iterations: 20 }, 'has 20 iterations for 10 virtual users: each holds its streams for the whole run, so write --vus 20'],
      [{ CONNECTIONS: '11' }, {}, 'CONNECTIONS is 11, but the options of k6 (flags, K6_VUS, K6_ITERATIONS or a configuration file) hold only 10'],
      [{ SECONDS: '3600' }, { maxDuration: '59m30s' }, 'the scenario default ends after 3600 s, but SECONDS=3600'],
      [{ SECONDS: '601' }, { maxDuration: undefined, gracefulStop: undefined }, 'the scenario default ends after 630 s, but SECONDS=601'],
    ])) {
      throws(() => heedOptions(soak({ END_TIMEOUT: '90', ...env }), laptop(changed)), says);
    }
  },
});
