// @ts-check
// One event stream and its ledger, from the connect to the close that was requested of the server. What
// every script of load-tests/sse shares.

import { check } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { Ledger } from 'k6/x/soak';
import { EventSource } from 'k6/x/sse';

import { DELETE_TIMEOUT } from './config.js';

/** So many DELETEs are under way at a time, of one virtual user and of a runner: thousands would dial at once. */
const DISCONNECTS = 20;
const DISCONNECTS_OF_RUNNER = 500;

/** How long a stream on which a noop is due is left alone, in ms, before its ledger is asked again. */
const RECHECK = 100;

/** The statuses with which a service answers if it has no such stream. */
const NO_STREAM = [404, 410];

/** How often a ledger is asked whether the reader has seen that its stream was closed here, in ms. */
const RECHECK_CLOSED = 5;

function ignore() {}

/**
 * There may be thousands in a virtual user: a stream is its own listener, without a closure or a
 * promise while it is open.
 */
export class Stream {
  /**
   * Begins to connect.
   *
   * @param {import('./config.js').SoakConfig & {held?: boolean}} config `held: false` is of a stream to which the script
   *   does something that makes its messages late. It is done to a connection, which the stream then shares with no other
   * @param {string} id
   * @param {number} [n] which stream of the run it is, from 0
   */
  constructor(config, id, n = 0) {
    this.config = config;
    this.id = id;
    this.n = n;
    this.opened = false;
    this.over = false;
    /** Of the request that ends the stream, 0 before it was answered. */
    this.deleteStatus = 0;
    /** Whether the client was disconnected when its end was to be requested, so there was no stream to end. */
    this.disconnected = false;
    /** @type {() => void} called when the stream has opened */
    this.onopen = ignore;
    /** @type {() => void} called when the stream is over, and will not come back */
    this.onover = ignore;
    this.ledger = new Ledger(id, { held: config.held });
    const { url, ...request } = config.service.connect(n, id, this.ledger);
    this.source = new EventSource(url, {
      ...request,
      ledger: this.ledger,
      acceptEncoding: /** @type {import('k6/x/sse').AcceptEncoding} */ (config.acceptEncoding),
      http: /** @type {import('k6/x/sse').HttpVersion} */ (config.httpVersion),
      streamsPerConnection: config.held === false ? 1 : config.streamsPerConnection,
      followRedirects: config.followRedirects,
      idleTimeout: config.idleTimeout,
      reconnect: config.reconnect,
      tags: { name: config.service.connectRoute },
    });
    this.source.addEventListener('open', this);
    this.source.addEventListener('error', this);
  }

  /** @param {import('k6/x/sse').SSEEvent | import('k6/x/sse').ErrorEvent} event */
  handleEvent(event) {
    if (event.type === 'open') {
      this.opened = true;
      this.onopen();
    } else if ('willReconnect' in event && !event.willReconnect) {
      this.over = true;
      this.onover();
    }
  }

  /**
   * Requests that the server closes the stream, and returns when it has answered. A stream that never
   * opened is given up: if its id has a stream, that is another client's. So is a client that is reconnecting. Where the
   * service takes no such request the client ends the stream.
   */
  async requestClose() {
    this.onover = ignore;
    this.ledger.askToEnd(); // before the request, so that a stream that ends in between does not count as dropped
    this.source.reconnect = false;
    this.source.idleTimeout = 0; // from here on END_TIMEOUT decides
    const { service } = this.config;
    this.disconnected = this.opened && this.config.reconnect === true && this.ledger.state !== 'open';
    if (!this.opened || this.disconnected || service.endBy !== 'request') {
      this.source.close();
      return;
    }
    const { url, method, body, headers } = service.end(this.n, this.id);
    const { status } = await http.asyncRequest(method, url, body ?? null, {
      headers,
      redirects: 0, // to another origin it would take the token along
      tags: { name: service.endRoute },
      timeout: DELETE_TIMEOUT,
    });
    this.deleteStatus = status;
  }

  /** Waits until the stream whose close was requested has ended; one that has not after END_TIMEOUT is closed here. */
  async ended() {
    if (!this.over && this.source.readyState !== EventSource.CLOSED) {
      await new Promise((resolve) => {
        const timer = setTimeout(() => resolve(undefined), this.config.endTimeout * 1000);
        this.onover = () => {
          clearTimeout(timer);
          resolve(undefined);
        };
      });
    }
    this.source.close();
    while (this.ledger.state === 'open') { // its reader has not seen yet that it was closed here
      await sleep(RECHECK_CLOSED);
    }
  }
}

/**
 * Waits until the stream has opened, or has come to nothing. A server cannot end a stream that it
 * has not seen yet.
 *
 * @param {Stream} stream
 * @returns {Promise<void>}
 */
export function settled(stream) {
  return new Promise((resolve) => {
    stream.onopen = stream.onover = () => {
      stream.onopen = stream.onover = ignore;
      resolve();
    };
  });
}

/**
 * @param {number} ms
 * @returns {Promise<void>}
 */
export function sleep(ms) {
  return new Promise((resolve) => {
    setTimeout(() => resolve(), ms);
  });
}

/**
 * Waits for some time, or until the last of the streams is over; where there is none, for all of it.
 *
 * @param {Stream[]} streams
 * @param {number} ms
 * @returns {Promise<void>}
 */
export function untilOver(streams, ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(), ms);
    let left = streams.length;
    const over = () => {
      left--;
      if (left === 0) {
        clearTimeout(timer);
        resolve();
      }
    };
    for (const stream of streams) {
      stream.onover = over;
    }
  });
}

/**
 * Opens streams in groups, until there are `target` of them: all at once would measure the accept queue.
 *
 * @template {Stream} S
 * @param {S[]} streams those that are there; the new ones are appended
 * @param {{target: number, group: number, pause: number}} pace `pause` in ms, after each group
 * @param {(n: number) => S} open begins to connect the stream of that number
 */
export async function openInGroups(streams, { target, group, pause }, open) {
  while (streams.length < target) {
    for (let n = 0; n < group && streams.length < target; n++) {
      streams.push(open(streams.length));
    }
    await sleep(pause);
  }
}

/**
 * Requests that the server closes the streams, some at a time, and calls `each` for every one that has
 * ended. A stream is left alone while a noop is due on it, so that what is lost at the end can be told
 * from what is on its way.
 *
 * @template {Stream} S
 * @param {S[]} streams
 * @param {(stream: S) => void} each
 */
export async function closeAll(streams, each) {
  const queue = streams.slice();
  /** @type {Promise<void>[]} */
  const ends = [];
  const work = async () => {
    for (let stream = queue.shift(); stream; stream = queue.shift()) {
      const undecided = stream.ledger.undecidedMs;
      if (undecided > 0) {
        await sleep(Math.min(undecided, RECHECK));
        queue.push(stream);
        continue;
      }
      await stream.requestClose();
      ends.push(ended(stream, each));
    }
  };
  const workers = [];
  const share = Math.max(Math.floor(DISCONNECTS_OF_RUNNER / exec.instance.vusInitialized), 1);
  for (let n = 0; n < Math.min(DISCONNECTS, share); n++) {
    workers.push(work());
  }
  await Promise.all(workers);
  await Promise.all(ends);
}

/**
 * @template {Stream} S
 * @param {S} stream
 * @param {(stream: S) => void} each
 */
async function ended(stream, each) {
  await stream.ended();
  each(stream);
}

/**
 * Reports whether the request for the end got the expected status, or there was no stream to end. If clients reconnect, the
 * stream may have ended a moment before.
 *
 * @param {Stream} stream
 */
function endAccepted({ deleteStatus, disconnected, ledger, config: { service, reconnect } }) {
  const accepted = service.accepts(deleteStatus);
  return accepted || disconnected || (reconnect === true && NO_STREAM.includes(deleteStatus) && ledger.state === 'completed');
}

/**
 * The three checks of every connection, of a stream that has ended; two where no request ends it.
 *
 * @param {Stream} stream
 * @param {boolean} [received] whether all messages came; without, the ledger tells
 */
export function checkStream(stream, received = stream.ledger.faultless) {
  const { service } = stream.config;
  check(null, {
    'Get status was 200': () => stream.opened,
    ...(service.endBy === 'request' && { 'Delete status was 200': () => endAccepted(stream) }),
    'Received all messages': () => received,
  });
}
