// @ts-check
// lib/settings.js, lib/config.js and lib/service.js: what a script makes of its environment variables, and what it says of
// wrong ones. test/e2e/testdata/urls.js has the URLs.

import { DISCONNECT_LEAD, heedOptions, noopConfig, oneRunner, soakConfig, streamConfig, teardown } from '../lib/config.js';
import { loadService } from '../lib/service.js';
import { SETTINGS } from '../lib/plan.js';
import { authorization, list, number, setting, url, whole } from '../lib/settings.js';
import { equal, given, runInInit, that, throws, thresholds } from './cases.js';

export const options = { thresholds };

const BACKEND_URL = 'http://service:8080';
const soak = (/** @type {Record<string, string>} */ env = {}) => given({ BACKEND_URL, ...env }, () => soakConfig(noop(setting(SETTINGS.noopInterval))));

/** @returns {never} */
const never = () => {
  throw new Error('a configuration calls no function of a service');
};

/** A service as k6/x/soak compiles it, to which the run publishes. */
const published = { name: 'mine', numbered: true, published: true, padded: false, every: 0, heartbeatEvery: 0, endBy: /** @type {const} */ ('client'), lifetime: 0, connectRoute: '', endRoute: '', connect: never, end: never, accepts: never };
const noop = (/** @type {number} */ every) => ({ ...published, name: 'noop', published: false, every, endBy: /** @type {const} */ ('request') });
const described = (/** @type {object} */ changed, /** @type {Record<string, string>} */ env = {}) => given(
  { BACKEND_URL, SERVICE: 'mine', ...env }, () => soakConfig({ ...published, ...changed }),
);

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
    const config = soak({ CONNECTIONS: '600', SECONDS: '60', NOOP_INTERVAL: '2', PREFIX: 'a-', RECONNECT: '1', BACKEND_TOKEN: 't', END_TIMEOUT: '3' });
    equal([config.connections, config.seconds, config.noopInterval, config.prefix], [600, 60, 2, 'a-']);
    equal([config.reconnect, config.headers, config.endTimeout, config.idleTimeout], [true, { Authorization: 'Bearer t' }, 3, 5000]);
    equal(soak({ NOOP_INTERVAL: '1' }).endTimeout, 15, 'END_TIMEOUT of short intervals');
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
    throws(() => soak({ RECONNECT: 'yes' }), 'RECONNECT is "yes": it must be 1 or 0.');
    throws(() => soak({ RUNNERS: '1.5' }), 'RUNNERS is "1.5": it must be a whole number.');
  },
  'a suite of short intervals cuts nobody off who is silent for a moment': () => {
    const config = given({ BACKEND_URL, PREFIX: 'p-' }, () => streamConfig(noop(1), { connections: 5, seconds: 60, lateMs: 500 }));
    equal([config.idleTimeout, config.lateMs, config.prefix, config.reconnect], [10000, 500, 'p-', false]);
    const own = given({ BACKEND_URL, SECONDS: '1', RECONNECT: '1' }, () => streamConfig(noop(1), { connections: 5, seconds: 60, lateMs: 500 }));
    equal([own.seconds, own.reconnect], [60, false], 'what a suite says itself');
  },
  'a soak of noops, by name or by default, has that description': () => {
    for (const env of /** @type {Record<string, string>[]} */ ([{}, { SERVICE: '' }, { SERVICE: 'noop' }])) {
      const { service, ownToken } = given({ BACKEND_URL, ...env }, loadService);
      equal([service.name, service.every, service.endBy, ownToken], ['noop', 15, 'request', false]);
      equal([service.connectRoute, service.endRoute], ['GET /event/connect', 'DELETE /event/forcedisconnect']);
    }
  },
  'the interval is that of what is owed, and a silence that of the rarest': () => {
    const rate = { TOPICS: '5', PUBLISH_RATE: '2' };
    for (const [changed, env, interval, idle] of /** @type {[object, Record<string, string>, number, number][]} */ ([
      [{}, rate, 2.5, 10000], // nothing is published at first and at last
      [{}, { ...rate, TOPICS: '10' }, 5, 12500],
      [{ heartbeatEvery: 30 }, rate, 2.5, 75000],
      [{ every: 20 }, {}, 20, 50000],
      [{ every: 20, heartbeatEvery: 4 }, rate, 2.5, 10000],
      [{ published: false, numbered: false, heartbeatEvery: 40 }, {}, 40, 100000],
      [{ published: false, heartbeatEvery: 40 }, { NOOP_INTERVAL: '7' }, 7, 100000],
      [{ published: false, numbered: false }, { NOOP_INTERVAL: '7' }, 7, 17500],
    ])) {
      const config = described(changed, env);
      equal([config.noopInterval, config.idleTimeout], [interval, idle], JSON.stringify([changed, env]));
    }
  },
  'clients of a server that ends streams come back': () => {
    equal(described({ published: false }).reconnect, false);
    equal(described({ published: false, endBy: 'server' }, { RECONNECT: '0' }).reconnect, true);
  },
  'clients whose tokens expire come back, and ask for a token of that lifetime': () => {
    equal(described({ published: false }, { TOKEN_TTL: '30' }).reconnect, true);
    throws(() => described({ published: false }, { TOKEN_TTL: '-1' }), 'TOKEN_TTL is -1: it must be a whole number of seconds');
    throws(() => given({ SERVICE: 'nchan', TOKEN_TTL: '30' }, loadService), 'TOKEN_TTL is 30, but the description has no token(): write token: (ttl) => …');
    throws(() => given({ SERVICE: 'mercure', TOKEN_TTL: '30' }, loadService), 'TOKEN_TTL is 30, but token() of the description takes no number');
  },
  'what is published has to fit the description': () => {
    throws(() => described({ published: false }, { TOPICS: '5', PUBLISH_RATE: '2' }), 'TOPICS is 5 and PUBLISH_RATE 2, but the description of mine has no publish');
    throws(() => described({}), 'mine brings what is published to it: say by TOPICS and PUBLISH_RATE');
    throws(() => described({}, { PUBLISH_RATE: '0.001' }), 'PUBLISH_RATE is 0.001: it must be from 0.01 to 10000');
  },
  'a service that is not there is refused with those that are': () => {
    throws(() => given({ SERVICE: 'nchann' }, loadService), 'SERVICE is "nchann": load-tests/services has centrifugo, django-eventstream, ');
    throws(() => given({ SERVICE: '/nosuch/mine.js' }, loadService), 'SERVICE is "/nosuch/mine.js": there is no such file.');
    throws(() => given({ SERVICE: 'C:\\nosuch\\mine.js' }, loadService), 'SERVICE is "C:\\nosuch\\mine.js": there is no such file.');
    throws(() => given({ SERVICE: 'mine.js' }, loadService), 'SERVICE is "mine.js": write the whole path');
    throws(() => given({ SERVICE: '../lib/settings' }, loadService), 'the module has no description');
  },
  'a script that knows noops only refuses other services': () => {
    throws(() => given({ BACKEND_URL, SERVICE: 'nchan' }, noopConfig), 'SERVICE is "nchan": this script holds streams of noop only.');
    throws(() => given({ BACKEND_URL, SERVICE: 'nchan' }, () => streamConfig(noop(1), { connections: 5, seconds: 60, lateMs: 500 })), 'SERVICE is "nchan"');
  },
  'a suite that needs one runner refuses more': () => {
    oneRunner('fanout');
    throws(() => given({ RUNNERS: '2' }, () => oneRunner('fanout')), 'RUNNERS is 2: fanout needs one runner');
  },
  'more streams, and a longer END_TIMEOUT, take longer to end': () => {
    const config = soak({ CONNECTIONS: '1000', NOOP_INTERVAL: '1' });
    equal(teardown(config), 45 + 15 + 20);
    equal(teardown({ ...config, runners: 2 }), 45 + 15 + 10);
    that(teardown({ ...config, endTimeout: 100 }) > 100, 'END_TIMEOUT does not fit');
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
      throws(() => heedOptions(soak({ NOOP_INTERVAL: '60', ...env }), laptop(changed)), says);
    }
  },
});
