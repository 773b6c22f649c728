/**
 * Thousands of plain requests per second. A call is one stage of a load, which runs in Go while the script awaits it.
 *
 * Each stage has its own scenario with one virtual user per runner. Each call makes its runner's share of the load, by
 * k6's execution segment. No request is lost or duplicated by rounding:
 *
 *     executor: 'per-vu-iterations', vus: RUNNERS, iterations: 1, maxDuration: longer than the stage can last
 *
 * **Each request is sent once**, over HTTP/1.1. Connections are reused, and replaced after a server has closed them.
 * A request whose connection ends before its response fails. Redirects are not followed, cookies are not stored and
 * no compression is requested.
 *
 * k6's own options apply: `hosts`, `dns`, blocked hosts and addresses, `--local-ips`, `tlsAuth`, `tlsVersion`,
 * `insecureSkipTLSVerify`, `userAgent` and `noConnectionReuse`. The proxy of the environment applies, too. `rps`
 * limits a closed stage. An open stage throws if `rps` is below its rate, and a burst ignores it.
 *
 * **Metrics**
 *
 * | metric | kind | meaning |
 * |---|---|---|
 * | `request_duration` | trend, ms | until the last byte of the response, or the failure; includes connecting if necessary |
 * | `request_first_byte` | trend, ms | until the first byte of the response, if one arrived |
 * | `request_waited` | trend, ms | open stage: how long a request waited because no connection was free, if it did |
 * | `request_connected` | trend, ms | for the same requests: `request_duration` without that wait |
 * | `request_late` | trend, ms | stage with a fixed length: how long after the end of the stage a correct response arrived |
 * | `unrequested_bytes` | counter | connections on which the server sent unrequested bytes after its response, or before the first request |
 * | `dropped_iterations` | counter | requests that were never made (k6's own metric) |
 * | `sent_after` | trend, ms | burst: from its start until the request was sent |
 * | `server_in_flight` | trend | burst: requests in flight in the server, if it reports them in `X-In-Flight` |
 *
 * `request_duration` and `request_late` have the tag `waited` for requests with a sample of `request_waited`. All
 * metrics have the tags of the virtual user and the stage's `tags`. `request_duration` and `request_late` also have
 * `endpoint` (the operation), `server` (`X-Server` of the response, if any) and `code`. `request_first_byte` and
 * `request_connected` have only `code` of these tags, and `unrequested_bytes` has only `endpoint`. Values of `code` are
 * `ok`; `wrong` (not the expected response, or longer than announced); `truncated` (the connection ended before the
 * body did); `status-503`; `no_ports`, `no_descriptors` or `no_ipv6` if this machine had none for the connection; or
 * `net-1220` for any other network error with [k6's error
 * code](https://grafana.com/docs/k6/latest/javascript-api/error-codes/).
 */
declare module 'k6/x/requests' {
  /**
   * A kind of request. The requests of a stage use the operations in turn. In `url`, `headers`, `body` and `want` the
   * text `{unique}` is replaced by 20 letters and digits that no other request has.
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
    /** The expected response. Default: status 200, any body. */
    want?: Want;
  }

  export interface Want {
    /** Default 200. Any other status is a failure with its own code. */
    status?: number;
    /** The body, byte for byte. */
    body?: string | ArrayBuffer;
    /** The body as JSON, or its part at the path `at`. Spaces and the order of names do not matter. */
    json?: unknown;
    /** Path of names separated by dots, such as `result` or `data.id`. */
    at?: string;
  }

  interface Common {
    /** At least one. */
    operations: Operation[];
    /** Time limit of a request: milliseconds, or a string such as `"10s"`, which is the default. */
    timeout?: number | string;
    tags?: Record<string, string>;
  }

  export interface Closed extends Common {
    /** Concurrent requests of all runners. A new request starts as soon as another one has its response. */
    concurrency: number;
    /** Total of all runners. Without it, as many as possible within `seconds`. */
    requests?: number;
    /** Seconds after which no request starts. The rest of `requests` is never made. */
    seconds?: number;
  }

  export interface Open extends Common {
    /** Requests per second of all runners. */
    rate: number;
    seconds: number;
    /** Maximum connections of all runners. */
    concurrency: number;
  }

  export interface Burst extends Common {
    /** Requests of all runners, each on its own connection. */
    requests: number;
  }

  /** The result of this runner's share of a stage. */
  export interface Counts {
    /** Requests with an outcome. */
    made: number;
    /** Of these, requests with an outcome other than `ok`. */
    failed: number;
    /** Requests that were never made. */
    dropped: number;
  }

  /**
   * Runs a closed stage. It needs `requests`, `seconds` or both.
   *
   * The promise resolves when every request has an outcome, or at once with the counts so far when k6 ends the
   * iteration. The same applies to {@link open} and {@link burst}.
   *
   * @throws in the init context, and for invalid, missing or unknown options. A failed request does not throw. Use a
   *   check of the counts, or a threshold (examples/08-plain-requests.js).
   *
   * @example
   * import { closed } from 'k6/x/requests';
   *
   * export const options = {
   *   scenarios: { load: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: '1m' } },
   * };
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
   * Makes requests at a constant rate, even if the service is slower. The duration of each is measured from its
   * intended start, so that it includes a wait for a free connection while the service stalls. A request without a free
   * connection within `timeout` is never made. A request that was sent has the whole `timeout` for its response.
   *
   * @throws as {@link closed}.
   */
  export function open(stage: Open): Promise<Counts>;

  /**
   * Makes requests at the same time. It opens all connections first and then sends all requests. It reads no response
   * before the last request is sent, except for requests of over 64 KiB, which take as long as the server needs to
   * read them. The duration of each is measured from the start of its sending.
   *
   * @throws as {@link closed}.
   */
  export function burst(stage: Burst): Promise<Counts>;
}
