/**
 * Plain requests by the thousand per second: a call is one stage of a load, which runs in Go while the script awaits it.
 *
 * Each stage has a scenario of its own with one virtual user per runner, and each call takes its runner's share of the load, by
 * k6's execution segment; no request is lost or made twice in rounding:
 *
 *     executor: 'per-vu-iterations', vus: RUNNERS, iterations: 1, maxDuration: longer than the stage can take
 *
 * **Each request is sent once**, over HTTP/1.1. Connections are reused, and opened anew after a server closed them; a request whose
 * connection ends before its answer has failed. No redirect is followed, no cookie is kept and no compression is asked for.
 *
 * k6's own options apply: `hosts`, `dns`, blocked hosts and addresses, `--local-ips`, `tlsAuth`, `tlsVersion`,
 * `insecureSkipTLSVerify`, `userAgent` and `noConnectionReuse`; so does the proxy that the environment names. `rps` holds back a
 * closed loop; an open loop refuses one below its rate, and a burst takes no notice of it.
 *
 * **Metrics**
 *
 * | metric | kind | meaning |
 * |---|---|---|
 * | `request_duration` | trend, ms | to the last byte of the answer, or to the failure; connecting is part of it where it was necessary |
 * | `request_first_byte` | trend, ms | to the first byte of the answer, where one came |
 * | `request_waited` | trend, ms | of an open loop: how long a request waited because no connection was free, where it did |
 * | `request_connected` | trend, ms | of the same requests: `request_duration` without that wait |
 * | `request_late` | trend, ms | of a stage with a fixed length: how long after its end a good answer arrived |
 * | `unrequested_bytes` | counter | connections on which a server sent bytes after its answer that no request asked for |
 * | `dropped_iterations` | counter | requests that were never made (k6's own metric) |
 * | `sent_after` | trend, ms | of a burst: from its start until the request was on the wire |
 * | `server_in_flight` | trend | of a burst: how many requests the server had in hand, where it says so by `X-In-Flight` |
 *
 * `request_duration` and `request_late` have the tag `waited` for requests with a sample of `request_waited`.
 * Tags of the first, and but for `endpoint` and `server` of the second: those of the virtual user, the stage's `tags`, `endpoint`
 * (the operation), `server` (what the answer's `X-Server` says; none without) and `code`: `ok`; `wrong` (the answer is not what it must be, or longer than it says);
 * `truncated` (the connection ended before the body of the answer did); `status-503`; or `net-1220` for an error of the network by
 * [k6's number](https://grafana.com/docs/k6/latest/javascript-api/error-codes/).
 */
declare module 'k6/x/requests' {
  /**
   * One thing to ask. The requests of a stage take them in turn. In `url`, `headers`, `body` and `want` the text `{unique}` stands for 20
   * letters and digits that no other request has.
   */
  export interface Operation {
    /** The tag `endpoint`. Default: the path of the URL. */
    name?: string;
    /** Default `GET`. */
    method?: string;
    /** Absolute, `http:` or `https:`. */
    url: string;
    headers?: Record<string, string>;
    body?: string | ArrayBuffer;
    /** What the answer must be. Default: status 200, any body. */
    want?: Want;
  }

  export interface Want {
    /** Default 200. Any other status is a failure, with its own code. */
    status?: number;
    /** The body, byte for byte. */
    body?: string | ArrayBuffer;
    /** The body, or what `at` leads to in it, as JSON: spaces and the order of names do not matter. */
    json?: unknown;
    /** Names with dots between, such as `result` or `data.id`. */
    at?: string;
  }

  interface Common {
    /** At least one. */
    operations: Operation[];
    /** How long a request may take: milliseconds, or a text such as `"10s"`, which is the default. */
    timeout?: number | string;
    tags?: Record<string, string>;
  }

  export interface Closed extends Common {
    /** So many at a time, over all runners: a new one as soon as one has its answer. */
    concurrency: number;
    /** In all, over all runners. Without it, as many as `seconds` allow. */
    requests?: number;
    /** After so many seconds none is begun any more; what is left of `requests` was never made. */
    seconds?: number;
  }

  export interface Open extends Common {
    /** Per second, over all runners. */
    rate: number;
    seconds: number;
    /** So many connections at most, over all runners. */
    concurrency: number;
  }

  export interface Burst extends Common {
    /** So many at once, over all runners, each on a connection of its own. */
    requests: number;
  }

  /** What became of this runner's share of a stage. */
  export interface Counts {
    /** Requests with an outcome, good or not. */
    made: number;
    /** Of these, all that were not `ok`. */
    failed: number;
    /** Requests that were never made. */
    dropped: number;
  }

  /**
   * A closed loop. It needs `requests`, `seconds` or both.
   *
   * The promise resolves when every request has an outcome; at once, with what there is, when k6 ends the iteration. That holds
   * for the other two as well.
   *
   * @throws in the init context, and for options that are wrong, missing or unknown. A failed request does not throw: a check of the
   *   counts, or a threshold, has to look (examples/08-plain-requests.js).
   *
   * @example
   * import { closed } from 'k6/x/requests';
   *
   * export const options = { scenarios: { load: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: '1m' } } };
   *
   * export default async function () {
   *   await closed({
   *     operations: [{ name: 'sum', url: 'http://localhost:8080/add?a=1&b=2', want: { json: 3, at: 'result' } }],
   *     concurrency: 50,
   *     seconds: 30,
   *   });
   * }
   */
  export function closed(stage: Closed): Promise<Counts>;

  /**
   * Requests at a constant rate, whether the service keeps up or not. The time of each counts from its intended start, so that a
   * stalled service cannot hide: where no connection was free then, the wait for one is part of it. A request for which none
   * was free within `timeout` was never made; one that was sent has all of `timeout` for its answer.
   *
   * @throws as {@link closed}.
   */
  export function open(stage: Open): Promise<Counts>;

  /**
   * As many requests at once as there can be: all connections are opened first, then every request is sent, and no answer is read
   * before the last one is on the wire; requests of over 64 KiB, which take as long to send as the server takes to read them, wait
   * for no other. The time of each counts from when it was sent.
   *
   * @throws as {@link closed}.
   */
  export function burst(stage: Burst): Promise<Counts>;
}
