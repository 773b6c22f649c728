// Options of EventSource of k6/x/soak, including the second request.

declare module "k6/x/soak" {
  /** The event whose values a second request can contain. */
  export interface FirstEvent {
    /**
     * The last event ID after this event, `""` for none.
     * @example "k2xf9qz01ab" // PocketBase: the client's id
     */
    readonly id: string;
    /**
     * `""` if the event has no name.
     * @example "PB_CONNECT"
     */
    readonly name: string;
    /** @example '{"clientId":"k2xf9qz01ab"}' */
    readonly data: string;
  }

  /**
   * A part of a second request: a template, or a function that is called once per stream, on
   * the event loop. An exception in it ends the iteration.
   *
   * In a template, `{first.id}`, `{first.name}` and `{first.data}` are replaced by values of the first
   * event. Any other name after `first.` throws a TypeError; other braces stay as they are. Values are
   * escaped for their place. In a URL they are percent-encoded, unless the URL is only that
   * placeholder. In a body they are escaped by its `Content-Type`: as JSON between quotes that you write, or
   * as a form. Under any other type they are not escaped.
   *
   * @example '{"clientId":"{first.id}","subscriptions":["notes"]}'
   * @example (first) => JSON.stringify({ session: JSON.parse(first.data).session })
   */
  export type FromFirstEvent = string | ((first: FirstEvent) => string);

  /** A request that follows the first event of each stream; see {@link EventSourceOptions.then}. */
  export interface SecondRequest {
    /**
     * Default `POST`.
     * @example "PUT"
     */
    method?: string;
    /**
     * Absolute, or relative to the URL of the stream after redirects.
     * @example "/api/realtime" // PocketBase
     * @example "{first.data}" // the URL in the event `endpoint` of MCP's HTTP+SSE transport
     */
    url: FromFirstEvent;
    /**
     * Headers of this request. Headers of the stream are not repeated; cookies of the VU are sent.
     * @example { "Content-Type": "application/json", Authorization: `Bearer ${__ENV.TOKEN}` }
     */
    headers?: Record<string, FromFirstEvent>;
    /**
     * Default: none.
     * @example '{"clientId":"{first.id}","subscriptions":["notes"]}'
     */
    body?: FromFirstEvent;
    /**
     * The name of the event that the request follows. Default: the first event of any name. Comments and
     * blocks without data are not events.
     * @example "PB_CONNECT"
     */
    event?: string;
    /**
     * The expected statuses. Default: 200 to 299.
     * @example [204]
     */
    ok?: number[];
    /**
     * Time limit from the stream's headers to its first event, and again from the dial to the headers of the
     * response; 0 for none. Default: `connectTimeout`.
     * @example "5s"
     */
    timeout?: Duration;
  }

  /** The compressions that a request accepts: none, only gzip, or all that browsers accept. */
  export type AcceptEncoding = "none" | "gzip" | "browser";

  /** The versions of HTTP that a stream may use. */
  export type HttpVersion = "auto" | "1.1" | "2";

  /** Options of {@link EventSource}. An unknown name throws a TypeError that names it. */
  export interface EventSourceOptions {
    /**
     * Request headers. They replace the client's defaults: `Accept: text/event-stream`, `Cache-Control: no-cache` and
     * k6's `User-Agent`. `Last-Event-ID` is the initial last event ID; ids that the stream receives replace it in later
     * attempts. If {@link EventSourceOptions.resume} is not `"header"`, `Last-Event-ID` is an ordinary header.
     * @example { Authorization: `Bearer ${__ENV.TOKEN}` }
     */
    headers?: Record<string, string>;
    /**
     * The method of the request, repeated with each reconnect. Default `GET`. Not in the standard.
     * @example "POST"
     */
    method?: string;
    /**
     * The body of the request, repeated with each reconnect. It requires a `method` other than GET, and a
     * `Content-Type` in `headers` if the service needs one. Not in the standard.
     * @example JSON.stringify({ channels: ["news"] }) // with method: "POST"
     */
    body?: string;
    /**
     * The requested compressions. Default `"none"`: no `Accept-Encoding` is sent. `"browser"` requests gzip, deflate,
     * br and zstd. `Accept-Encoding` in `headers` has precedence. Events arrive as soon as the server has flushed them.
     * A stream that ends without the end mark of its compression is `truncated`. A compression that was not requested
     * ends the attempt with reason `content_type`. A compressed stream uses the memory of its window: 32 KB for gzip
     * and deflate, up to 16 MB for br, and up to 8 MB for zstd; a larger window of zstd is refused. Not in the
     * standard.
     * @example "browser"
     */
    acceptEncoding?: AcceptEncoding;
    /**
     * Default `"auto"`: HTTP/2 over TLS if the server selects it (ALPN), otherwise HTTP/1.1. `"2"`: only HTTP/2, over
     * `http://` by prior knowledge (h2c). Over HTTP/2, streams of a virtual user share connections. If a connection
     * breaks, all its streams end. If the server reports that it has not processed a request (GOAWAY, REFUSED_STREAM),
     * the client repeats it at once. Not in the standard.
     * @example "1.1"
     */
    http?: HttpVersion;
    /**
     * Maximum number of streams per HTTP/2 connection. Default 0: as many as the server allows. With 1, each stream has
     * its own connection. A stream whose ledger disconnects it always has its own connection. `vanish()` and `slow()`
     * require 1. Not in the standard.
     * @example 100
     */
    streamsPerConnection?: number;
    /**
     * How a reconnect sends the last event ID, if there is one. Default `"header"`, as in the
     * standard: `Last-Event-ID`. `{ query }` sets that parameter of the URL instead and keeps
     * the other parameters. `"none"` does not send the id. `lastEventId` of events is the same in each case.
     * @example { query: "since" } // ntfy
     */
    resume?: "header" | "none" | { query: string };
    /**
     * Called directly before each attempt after the first, with the source as `this`. The returned URL, headers or body
     * replace the previous ones, for this attempt and all later ones; omitted properties keep their values. The
     * attempt waits for the event loop. The function cannot be async. If it throws, the source closes
     * with reason `renew`. Tags keep the first URL. `Last-Event-ID` in the returned headers has no effect, unless
     * {@link EventSourceOptions.resume} is not `"header"`. Not in the standard.
     * @example () => ({ headers: { Authorization: `Bearer ${mint()}` } }) // a token that expires soon
     */
    renew?: (this: EventSource) => { url?: string; headers?: Record<string, string>; body?: string } | null | undefined | void;
    /**
     * A second request, after the first event of each stream, and thus after each reconnect. Some
     * services send events only after the client that the first event names has subscribed. The request has its own
     * connection; neither the event loop nor the stream waits for it.
     *
     * If the status is expected, the source calls listeners of the type `then`. Otherwise the stream ends with
     * reason `then` and the `status` of this response, 0 without one. It counts as a failed attempt. If
     * `reconnect` is omitted, another attempt follows a network error, but not a status. With `reconnect: true`,
     * another attempt also follows 404, 409, 410, 429 and 5xx.
     *
     * @example
     * new EventSource(`${base}/api/realtime`, {
     *   then: {
     *     url: "/api/realtime",
     *     headers: { "Content-Type": "application/json" },
     *     body: '{"clientId":"{first.id}","subscriptions":["notes"]}',
     *   },
     * });
     */
    then?: SecondRequest;
    /**
     * The value of the attribute of that name. It has no other effect: k6 has no origin, and cookies of the VU
     * are always sent. Default false.
     */
    withCredentials?: boolean;
    /** Tags for all samples of this source. `name` replaces the tags name and url. */
    tags?: Record<string, string | number | boolean>;
    /**
     * Time limit from the dial, redirects included, until the headers are complete. Default `"10s"`; 0 for none.
     * At most 250 sources of a process dial at a time; the wait before the dial does not count.
     */
    connectTimeout?: Duration;
    /**
     * Maximum time without a byte from the server, comments included. Then the client closes the stream
     * with reason `idle`. Default 0: no limit. If this process was stalled, the client also waits for the length
     * of the stall, up to half of the timeout.
     * @example "38s" // 2.5 noop intervals of 15 s
     */
    idleTimeout?: Duration;
    /**
     * Default: as in the standard (HTML 9.2.3). After the end of a stream for any reason,
     * and after a network error, the source reconnects with `Last-Event-ID`. An unexpected
     * status or content type, and 204, close the source.
     *
     * `false`: it never reconnects.
     *
     * `true`: it also reconnects after 409, 429 and 5xx, which the standard does not allow, and not before their
     * `Retry-After`. This is for servers that send these statuses while they start, drain, or still have the
     * previous stream of the same id.
     *
     * An event over `maxEventSize` always closes the source.
     */
    reconnect?: boolean;
    /**
     * The reconnection time, until the server sets one by `retry:`. Default 1000.
     *
     * The wait is never shorter (HTML 9.2.3). It is this time multiplied by a random factor in [1, 2),
     * so that thousands of clients do not reconnect at the same moment. From the second consecutive
     * failed attempt on, this time doubles up to 30 s.
     */
    reconnectDelay?: Duration;
    /**
     * Waits exactly the reconnection time before each attempt: without the random factor, without backoff, and
     * regardless of `Retry-After`. Default false. Not in the standard.
     */
    exactDelay?: boolean;
    /**
     * Maximum redirects (301, 302, 303, 307, 308) per attempt. The first three turn a POST into a GET, without its
     * body and its `Content-Type`. Default: k6's `maxRedirects`, 10.
     */
    maxRedirects?: number;
    /**
     * Whether redirects to another origin (scheme, host and port) are followed. Default false: such a redirect ends the
     * attempt with reason `status`. The other origin gets none of `headers`, and a request with a body is not
     * redirected to it. Not in the standard.
     */
    followRedirects?: boolean;
    /** Maximum bytes of one line, and of the data of one event. Default 1048576. Longer comments are skipped. */
    maxEventSize?: number;
    /**
     * A `Ledger` of `k6/x/soak`, or a value of another extension whose Go type implements the
     * interface `Ledger` of the Go package `k6/sse`. It receives every event in Go, with the time of the read, and
     * also comments and blocks without data, which many services send as heartbeats. An event without a listener
     * then runs no JavaScript and allocates no memory. Each source needs its own ledger; a second source with the same
     * `Ledger` throws a TypeError. Not in the standard.
     * @example new Ledger("client-1")
     */
    ledger?: object;
  }
}
