// @ts-check
// Code generated from internal/plan/table.go by `go generate ./internal/plan`. DO NOT EDIT.

/** How many streams a soak holds where neither CONNECTIONS nor an option of k6 says. */
export const USUAL_CONNECTIONS = 1200;

/** How many seconds before the end of the run each connection asks the server to end its stream. */
export const DISCONNECT_LEAD = 5;

/** By default a stream may take this many seconds to end, or END_TIMEOUT_INTERVALS noop intervals if that is longer. */
export const END_TIMEOUT_SECONDS = 15;

/** See END_TIMEOUT_SECONDS. It leaves time for a service that notices the DELETE only at its next noop. */
export const END_TIMEOUT_INTERVALS = 1.5;

/** How many seconds a runner may take to end its streams, beside the ends themselves. */
export const TEARDOWN_SECONDS = 45;

/** When a runner ends its streams, at least this many of its DELETEs are answered per second. */
export const ENDS_PER_SECOND = 50;

/**
 * What a script states of the plan (`Plan` of k6/x/soak): of each property the variable, its type in Go, what it is
 * where the variable is not set (with k6 alone, as `soak run` sets them all), and the bounds of any other value.
 */
export const SETTINGS = Object.freeze({
  connections: { name: 'CONNECTIONS', type: 'int', otherwise: 0, min: 1, max: 10000000, must: "a soak needs at least 1 connection, and at most 10000000" },
  seconds: { name: 'SECONDS', type: 'int', otherwise: 3600, min: 6, max: 31622400, must: "it must be over 5, because streams are ended 5 s before the end, and at most a year" },
  noopInterval: { name: 'NOOP_INTERVAL', type: 'float64', otherwise: 15, min: 0.001, max: Infinity, must: "it must be over 0 seconds, and at least 0.001" },
  runners: { name: 'RUNNERS', type: 'int', otherwise: 1, min: 1, max: Infinity, must: "it takes at least 1" },
  connectionsPerVU: { name: 'CONNECTIONS_PER_VU', type: 'int', otherwise: 1, min: 1, max: Infinity, must: "it must be at least 1" },
  backendUrl: { name: 'BACKEND_URL', type: 'string', otherwise: "" },
  prefix: { name: 'PREFIX', type: 'string', otherwise: "" },
  testid: { name: 'TESTID', type: 'string', otherwise: "" },
  lateMs: { name: 'LATE_MS', type: 'int', otherwise: 1000, min: 1, max: 31622400000, must: "it must be at least 1 ms, and at most a year" },
  reconnect: { name: 'RECONNECT', type: 'bool', otherwise: false },
  endTimeout: { name: 'END_TIMEOUT', type: 'float64', otherwise: 0, min: 0, max: 31622400, must: "it must be a number of seconds over 0, or 0 for the default, and at most a year" },
  topics: { name: 'TOPICS', type: 'int', otherwise: 0, min: 0, max: 10000000, must: "it must be a whole number, 0 where nothing is published" },
  publishRate: { name: 'PUBLISH_RATE', type: 'float64', otherwise: 0, min: 0.01, max: 10000, must: "it must be from 0.01 to 10000 messages per second, or 0 where nothing is published" },
  tokenTtl: { name: 'TOKEN_TTL', type: 'int', otherwise: 0, min: 0, max: 31622400, must: "it must be a whole number of seconds, up to a year, or 0 where nothing is said" },
  acceptEncoding: { name: 'ACCEPT_ENCODING', type: 'string', otherwise: "none" },
  httpVersion: { name: 'HTTP_VERSION', type: 'string', otherwise: "auto" },
  streamsPerConnection: { name: 'STREAMS_PER_CONNECTION', type: 'int', otherwise: 0, min: 0, max: 65535, must: "it must be a whole number, up to 65535, or 0 for as many as the server allows" },
  followRedirects: { name: 'FOLLOW_REDIRECTS', type: 'bool', otherwise: false },
});

/** The modules of load-tests/services, by name. */
export const SERVICES = Object.freeze(['centrifugo', 'django-eventstream', 'mercure', 'nchan', 'noop', 'ntfy', 'pocketbase', 'sse']);
