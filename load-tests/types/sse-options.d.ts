// What an EventSource of k6/x/soak can be told, its second request among it.

declare module "k6/x/soak" {
  /** The event that a second request is made from. */
  export interface FirstEvent {
    /**
     * The last event ID after it, `""` for none.
     * @example "k2xf9qz01ab" // PocketBase: the client's id
     */
    readonly id: string;
    /**
     * `""` where it has none.
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
   * In a template `{first.id}`, `{first.name}` and `{first.data}` stand for parts of the first
   * event; another name after `first.` throws a TypeError, other braces stand for themselves. Values
   * are written so that they stay in their place: percent-encoded in a URL, unless the URL is that one
   * placeholder; in a body as its `Content-Type` wants it, as JSON between quotes that you write, or
   * as a form, and as they are under any other type.
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
     * @example "{first.data}" // where the service says: the event `endpoint` of MCP's HTTP+SSE transport
     */
    url: FromFirstEvent;
    /**
     * Its own: those of the stream are not sent again; the VU's cookies are.
     * @example { "Content-Type": "application/json", Authorization: `Bearer ${__ENV.TOKEN}` }
     */
    headers?: Record<string, FromFirstEvent>;
    /**
     * Default: none.
     * @example '{"clientId":"{first.id}","subscriptions":["notes"]}'
     */
    body?: FromFirstEvent;
    /**
     * The name of the event it waits for. Default: the first event of any name; comments and
     * blocks without data are none.
     * @example "PB_CONNECT"
     */
    event?: string;
    /**
     * The statuses that are right. Default: 200 to 299.
     * @example [204]
     */
    ok?: number[];
    /**
     * From the stream's headers to its first event, and again from the dial to the headers of the
     * answer; 0 for none. Default: `connectTimeout`.
     * @example "5s"
     */
    timeout?: Duration;
  }

  /** Which compressions a request asks for: none, gzip alone, or what browsers do. */
  export type AcceptEncoding = "none" | "gzip" | "browser";

  /** Which versions of HTTP a stream may speak. */
  export type HttpVersion = "auto" | "1.1" | "2";

  /** Options of {@link EventSource}. An unknown name throws a TypeError that names it. */
  export interface EventSourceOptions {
    /**
     * Request headers. They replace the client's own: `Accept: text/event-stream`, `Cache-Control: no-cache` and k6's `User-Agent`.
     * `Last-Event-ID` is the initial last event ID: ids that the stream receives replace it in later attempts. With another
     * {@link EventSourceOptions.resume} it is an ordinary header.
     * @example { Authorization: `Bearer ${__ENV.TOKEN}` }
     */
    headers?: Record<string, string>;
    /**
     * The method of the request, repeated with each reconnect. Default `GET`. Not in the standard.
     * @example "POST"
     */
    method?: string;
    /**
     * The body of the request, repeated with each reconnect. It takes a `method` other than GET, and a
     * `Content-Type` in `headers` where the service wants one. Not in the standard.
     * @example JSON.stringify({ channels: ["news"] }) // with method: "POST"
     */
    body?: string;
    /**
     * Which compressions are asked for. Default `"none"`: no `Accept-Encoding` is sent. `"gzip"`, or `"browser"`: gzip,
     * deflate, br and zstd. `Accept-Encoding` in `headers` wins. Events come as soon as the server has flushed them; a
     * stream that ends without the end mark of its compression is `truncated`. What comes compressed in a way that was
     * not asked for ends the attempt with reason `content_type`. A compressed stream takes the memory of its window: 32 KB
     * of gzip and deflate, up to 16 MB of br, up to 8 MB of zstd, beyond which it is refused. Not in the standard.
     * @example "browser"
     */
    acceptEncoding?: AcceptEncoding;
    /**
     * Default `"auto"`: over TLS HTTP/2 where the server wants it (ALPN), otherwise HTTP/1.1. `"2"` is HTTP/2 alone, over
     * `http://` by prior knowledge (h2c). Over HTTP/2 streams of a virtual user share connections. When one dies, so do all its
     * streams; a stream that the server says it has not looked at (GOAWAY, REFUSED_STREAM) is asked for again at once.
     * Not in the standard.
     * @example "1.1"
     */
    http?: HttpVersion;
    /**
     * How many streams may share a connection over HTTP/2. Default 0: as many as the server allows. With 1 each stream has its
     * own, as one that a ledger has cut always does: what `vanish()` and `slow()` do is done to a connection. Not in the standard.
     * @example 100
     */
    streamsPerConnection?: number;
    /**
     * How a reconnect tells the last event ID, where there is one. Default `"header"`, as in the
     * standard: `Last-Event-ID`. `{ query }` sets that parameter of the URL in its place and leaves
     * the others as they are. `"none"` tells nothing. `lastEventId` of events is the same in each case.
     * @example { query: "since" } // ntfy
     */
    resume?: "header" | "none" | { query: string };
    /**
     * Called before each attempt after the first, when its time has come, with the source as `this`: what it returns
     * takes the place of the URL, of all headers or of the body, for this attempt and those after it; what it leaves
     * out stays. The attempt waits for the event loop. It cannot be async; where it throws the source ends for good,
     * with reason `renew`. Tags stay those of the first URL. Not in the standard.
     * @example () => ({ headers: { Authorization: `Bearer ${mint()}` } }) // a token that is soon over
     */
    renew?: (this: EventSource) => { url?: string; headers?: Record<string, string>; body?: string } | null | undefined | void;
    /**
     * A second request, after the first event of each stream and so again after each reconnect: some
     * services send events only once a client, named in the first, has subscribed. It has a connection
     * of its own; neither the event loop nor the stream waits for it.
     *
     * With the right answer listeners of the type `then` are called. Otherwise the stream ends with
     * reason `then` and `status` of this answer, 0 for none. It counts as a failed attempt: without
     * `reconnect` another follows a network error, and no status; with `reconnect: true` it also
     * follows 404, 409, 410, 429 and 5xx.
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
     * Told by the attribute of that name, and of no other effect: k6 has no origin of its own, and cookies of the VU
     * are sent in any case. Default false.
     */
    withCredentials?: boolean;
    /** Tags for all samples of this source. `name` stands in for the tags name and url. */
    tags?: Record<string, string | number | boolean>;
    /**
     * From the dial, redirects included, until the headers are complete. Default `"10s"`; 0 for none.
     * 1000 sources of a process dial at a time; waiting for a turn is no part of it.
     */
    connectTimeout?: Duration;
    /**
     * How long the server may send no byte at all (a comment is enough) before the stream
     * is closed with reason `idle`, while it happens. Default 0: for ever. Where this
     * process itself was stalled, it waits as long again, at most half of the timeout.
     * @example "38s" // 2.5 noop intervals of 15 s
     */
    idleTimeout?: Duration;
    /**
     * Left out: the standard (HTML 9.2.3). After the end of a stream, whatever its cause,
     * and after a network error the source connects again with `Last-Event-ID`; a wrong
     * status or content type, and 204, end it for good.
     *
     * `false`: it never connects again.
     *
     * `true`: beyond the standard, also after 409, 429 and 5xx, not before their
     * `Retry-After`. For servers that answer so while they start, drain or still hold the
     * former stream of the same id.
     *
     * An event over `maxEventSize` ends the source in any case.
     */
    reconnect?: boolean;
    /**
     * The reconnection time until the server sets one by `retry:`. Default 1000.
     *
     * The wait is never shorter (HTML 9.2.3): it is this time times a random factor in [1, 2),
     * so that thousands of clients do not come back as one; from the second failed attempt in
     * a row on this time doubles up to 30 s.
     */
    reconnectDelay?: Duration;
    /**
     * Waits exactly the reconnection time before each attempt: without the random factor, without backoff, whatever `Retry-After` asks for.
     * Default false. Not in the standard.
     */
    exactDelay?: boolean;
    /**
     * Redirects (301, 302, 303, 307, 308) followed per attempt. By the first three a POST becomes a GET, without its
     * body and its `Content-Type`. Default: k6's `maxRedirects`, 10.
     */
    maxRedirects?: number;
    /**
     * Whether redirects to another origin (scheme, host and port) are followed. Default false: such a redirect ends the
     * attempt with reason `status`. The other origin gets none of `headers`, and no request with a body. Not in the standard.
     */
    followRedirects?: boolean;
    /** Bytes of one line, and of the data of one event. Default 1048576. Longer comments are skipped. */
    maxEventSize?: number;
    /**
     * A `Ledger` of `k6/x/soak`, or any other extension's value whose Go type satisfies
     * `sse.Observer`. It sees every event in Go, with the time of the read. With a ledger
     * and no listener for an event no JavaScript runs for it and nothing is allocated.
     * One that satisfies `sse.BlockObserver` sees comments and blocks without data too, which
     * is how many services send their heartbeats.
     * One ledger for one source.
     * @example new Ledger("client-1")
     */
    ledger?: object;
  }
}
