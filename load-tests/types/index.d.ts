/// <reference path="./soak.d.ts" />
/// <reference path="./handshake.d.ts" />
/// <reference path="./globals.d.ts" />

/**
 * The modules compiled into `bin/k6`, as scripts see them. This file is their
 * documentation: units, errors, examples, and the section of the standard behind each
 * member. "HTML" is the HTML Living Standard, section 9.2 Server-sent events,
 * https://html.spec.whatwg.org/multipage/server-sent-events.html.
 *
 * All times are milliseconds unless a name says otherwise.
 */

/**
 * **Server-Sent Events for k6.**
 *
 * - {@link EventSource}: the browser's, on k6's event loop. One VU holds thousands.
 *   `setTimeout`, `fetch`-like calls and other sources go on beside it.
 * - {@link open}: one stream that blocks the VU until it ends, compatible with xk6-sse.
 *
 * Connections go through k6's own dialer: `--local-ips`, `hosts`, DNS options, blocked
 * hosts, `tls*` options, cookies of the VU and `data_received` work as for `k6/http`.
 * HTTP/1.1 only; no proxy; no compressed responses.
 *
 * **Metrics**
 *
 * | metric | kind | meaning |
 * |---|---|---|
 * | `sse_connecting` | trend, ms | dial begun (name resolution included) to headers complete, of streams that opened |
 * | `sse_first_event` | trend, ms | headers complete to the first event |
 * | `sse_event` | counter | events dispatched (comment-only blocks are none) |
 * | `sse_connection_opened` | counter | event streams opened |
 * | `sse_then` | trend, ms | dial begun to headers complete, of second requests ({@link EventSourceOptions.then}) with the right answer |
 * | `sse_connection_closed` | counter | attempts and streams ended, tag `reason` ({@link Reason}), tag `opened` (`true` for a stream, `false` for an attempt that never became one) |
 *
 * Streams open now = `sse_connection_opened` − `sse_connection_closed{opened:true}`.
 * Tags: those of the VU, your `tags`, and the enabled system tags `url`, `name`,
 * `method`, `status`, `proto`, `ip`, `tls_version`. `url` and `name` are the URL
 * without query, fragment and credentials, so no id gets into a tag; ids in the path
 * are hidden with `tags: { name: "…" }`, which stands in for both.
 *
 * EventSource adds its events up and pushes them as one `sse_event` sample per second
 * and set of tags, and the rest when the iteration's last source has ended. `open`
 * pushes one sample per event, and `http_reqs` and `http_req_duration` for the whole
 * stream, as xk6-sse does (its `http_req_sending` is `sse_connecting` here).
 * k6 metrics are for looking at; what must be exact is counted by a `ledger`.
 */
declare module "k6/x/sse" {
    /** A number of milliseconds, or a string such as `"10s"`, `"1m30s"`, `"500ms"`. */
    export type Duration = number | string;

    /**
     * Why a stream or an attempt ended.
     *
     * A stream: `server` (the server ended it after a whole block), `truncated` (it ended
     * inside an event block, a chunk or its Content-Length), `idle` (`idleTimeout` without
     * one byte), `too_long` (an event over `maxEventSize`), `then` (the second request of
     * {@link EventSourceOptions.then} failed, or the event that it waits for did not come),
     * `cut` ({@link EventSource.drop}, {@link EventSource.vanish}; or the suite `resume` cut it, to see it resume).
     *
     * An attempt: `connect_timeout`, `refused` (the dial failed or k6's options block the
     * host), `dns`, `tls`, `status` (neither 200 nor 204), `content_type` (not
     * `text/event-stream`, or compressed), `no_content` (204).
     *
     * Either: `reset` (the connection broke), `client` (the script closed it),
     * `interrupted` (k6 ended the iteration, or a handler threw), `timeout` (`timeout` of
     * {@link open}), `error` (anything else, such as broken HTTP). `truncated` and
     * `too_long` are also told of response headers.
     */
    export type Reason =
        | "server" | "truncated" | "idle" | "too_long" | "then" | "cut"
        | "connect_timeout" | "refused" | "dns" | "tls" | "status" | "content_type" | "no_content"
        | "renew" | "reset" | "client" | "interrupted" | "timeout" | "error";

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

    /** Options of {@link EventSource}. An unknown name throws a TypeError that names it. */
    export interface EventSourceOptions {
        /**
         * Request headers. They win over ours: `Accept: text/event-stream`,
         * `Cache-Control: no-cache`, k6's `User-Agent`, `Last-Event-ID`.
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
         * The wait is this time times a random factor in [0.5, 1.5), so that thousands of
         * clients do not come back as one; from the second failed attempt in a row on it
         * doubles up to 30 s.
         */
        reconnectDelay?: Duration;
        /** Redirects (301, 302, 303, 307, 308) followed per attempt. Default: k6's `maxRedirects`, 10. */
        maxRedirects?: number;
        /** Bytes of one line, and of the data of one event. Default 1048576. */
        maxEventSize?: number;
        /**
         * A `Ledger` of `k6/x/soak`, or any other extension's value whose Go type satisfies
         * `sse.Observer`. It sees every event in Go, with the time of the read. With a ledger
         * and no listener for an event no JavaScript runs for it and nothing is allocated.
         * One that satisfies `sse.BlockObserver` sees comments and blocks without data too, which
         * is how many services send their heartbeats.
         * One ledger for one source.
         * @example new Ledger("device-1")
         */
        ledger?: object;
    }

    /** What all events have. */
    export interface SSEEvent {
        readonly type: string;
        readonly target: EventSource;
        /** When the connection saw it, ms since 1970 with a fraction; not when the handler ran. */
        readonly timeStamp: number;
    }

    /** HTML 9.2.6: one dispatched event. Invalid UTF-8 is replaced by U+FFFD. */
    export interface MessageEvent extends SSEEvent {
        /** The values of its data lines, joined by a line feed. */
        readonly data: string;
        /** Its id or, where it has none, the latest before it, also over a reconnect. */
        readonly lastEventId: string;
        /** Of the URL after redirects, e.g. `"https://example.com:8443"`. */
        readonly origin: string;
        /** The comment lines inside its block, joined by a line feed; `""` for none. Not in the standard. */
        readonly comment: string;
        /** When the read that completed it returned, ms since 1970 with a fraction. Not in the standard. */
        readonly receivedAt: number;
    }

    /** The second request of a stream got the right answer. Not in the standard. */
    export interface ThenEvent extends SSEEvent {
        readonly type: "then";
        /**
         * HTTP status of that answer.
         * @example 204
         */
        readonly status: number;
    }

    /** A stream or an attempt ended. `readyState` is CONNECTING if another follows, CLOSED otherwise. */
    export interface ErrorEvent extends SSEEvent {
        readonly type: "error";
        readonly reason: Reason;
        /** In words; for an error status with the server's own sentence where it sent one. */
        readonly message: string;
        /** HTTP status of the response, 0 where there was none. */
        readonly status: number;
        readonly willReconnect: boolean;
        /** Until the next attempt; null where none follows. */
        readonly retryMs: number | null;
    }

    export type Listener<E> = ((this: EventSource, event: E) => void) | { handleEvent(event: E): void };

    /**
     * HTML 9.2.2, on k6's event loop. The iteration goes on as long as a source is not
     * closed.
     *
     * Handlers run between other tasks of the VU, never during one: `readyState` and
     * `status` change only there. An exception in a handler ends the iteration, as in
     * `k6/websockets`: all its sources are closed with reason `interrupted`. When k6 ends
     * the iteration (`gracefulStop`, Ctrl-C) sockets are closed at once and no handler runs.
     *
     * A source takes own properties (`source.device = id`) but no own symbols; a class may
     * extend it, but not override its attributes by accessors.
     *
     * @example
     * import { EventSource } from "k6/x/sse";
     *
     * export default function () {
     *   const source = new EventSource("http://localhost:8080/event/connect?id=a1", {
     *     idleTimeout: "40s",
     *     reconnect: false,
     *   });
     *   let noops = 0;
     *   source.onmessage = () => { noops++; };
     *   source.onerror = (e) => console.error(`${e.reason}: ${e.message} after ${noops} noops`);
     *   setTimeout(() => source.close(), 60_000);
     * }
     */
    export class EventSource {
        static readonly CONNECTING: 0;
        static readonly OPEN: 1;
        static readonly CLOSED: 2;
        readonly CONNECTING: 0;
        readonly OPEN: 1;
        readonly CLOSED: 2;

        /**
         * Begins to connect at once. What comes of it is told in later turns of the event
         * loop: handlers set right after the constructor, or in `onopen`, miss nothing.
         * @throws SyntaxError a URL that is not absolute, not http(s), or malformed
         * @throws TypeError an unknown option, or a wrong value; the message names it
         * @throws in the init context
         */
        constructor(url: string, options?: EventSourceOptions);

        /** As given to the constructor. */
        readonly url: string;
        /** Always false: k6 has no origin of its own. Cookies of the VU are sent. */
        readonly withCredentials: false;
        readonly readyState: 0 | 1 | 2;
        /** HTTP status of the last response, 0 before one. Not in the standard. */
        readonly status: number;
        /** Dial to headers of the latest stream, 0 before one. Not in the standard. */
        readonly connectMs: number;
        /**
         * Whether the source connects again after the next end. May be changed at any time:
         * set it to false before you ask the server to end the stream. Set to false during
         * the wait for another attempt it closes the source. Not in the standard.
         */
        reconnect: boolean;
        /**
         * The option `idleTimeout` in milliseconds, 0 for none. May be changed at any time: set it
         * to 0 where another deadline decides, as after you asked the server to end the stream. A
         * stream that was opened without one gets it with its next connection. Not in the standard.
         */
        idleTimeout: number;

        onopen: ((this: EventSource, event: SSEEvent) => void) | null;
        /** Events without a name, and those named `message`. */
        onmessage: ((this: EventSource, event: MessageEvent) => void) | null;
        onerror: ((this: EventSource, event: ErrorEvent) => void) | null;

        /**
         * Listens to `open`, `error`, `message`, `then` ({@link EventSourceOptions.then}) or the name
         * an event field gives. The on… handler runs first, then listeners in the order added.
         * @example source.addEventListener("stock", (e) => console.log(e.data));
         * @example source.addEventListener("then", (e) => console.log(`subscribed: ${e.status}`));
         */
        addEventListener(type: "open", listener: Listener<SSEEvent> | null, options?: { once?: boolean }): void;
        addEventListener(type: "error", listener: Listener<ErrorEvent> | null, options?: { once?: boolean }): void;
        addEventListener(type: "then", listener: Listener<ThenEvent> | null, options?: { once?: boolean }): void;
        addEventListener(type: string, listener: Listener<MessageEvent> | null, options?: { once?: boolean }): void;
        removeEventListener(type: string, listener: Listener<any> | null): void;

        /** Closes the connection at once, without waiting; no event follows. */
        close(): void;

        /**
         * Drops the open stream, as a client does that lost its network for a moment: FIN, an `error` event with
         * reason `cut`, and it connects again with the last event ID, where it connects again at all. With `true` it
         * does so at once, else after the reconnection time, spread as always. After a drop it dials without waiting
         * for a turn (`connectTimeout`): thousands that come back wait for nobody. Not in the standard.
         * @returns false where no stream is open: nothing happens
         * @example setTimeout(() => sources.forEach((s) => s.drop(true)), 60_000); // a storm of reconnects
         */
        drop(atOnce?: boolean): boolean;

        /**
         * Vanishes, as a machine does that loses its power: the connection stays open, nothing is sent on it, not even an
         * acknowledgement, and what comes is dropped unread. An `error` event with reason `cut` follows. The connection ends
         * with this process, by a reset. Needs no rights. Not in the standard.
         * @returns false where no stream is open: nothing happens
         * @throws where this system cannot do that: on anything but Linux, and in some sandboxes
         */
        vanish(): boolean;

        /**
         * Reads the open stream at most so fast from now on, as a client does that is on a thin line or hangs: what comes fills
         * the buffer of the connection, and then the server's. Meanwhile `idleTimeout` does not count, and `drop` and `vanish`
         * do nothing. Where the server ends the stream, what is left of it is read at once. Not in the standard.
         * @param bytesPerSecond 0: nothing is read; `Infinity`: all there is, as before
         * @returns false where no stream is open: nothing happens
         * @throws where this system cannot do that: with TLS, and on anything but Linux
         * @example sources.forEach((s, n) => n % 10 === 0 && s.slow(1024));
         */
        slow(bytesPerSecond: number): boolean;
    }

    /** Parameters of {@link open}. Unknown names are ignored. */
    export interface OpenParams {
        /** Default `GET`. */
        method?: string;
        body?: string;
        headers?: Record<string, string>;
        tags?: Record<string, string | number | boolean>;
        /** A `CookieJar` of `k6/http` in place of the VU's. */
        jar?: object;
        /** The **whole request**: the stream is ended, with an error, after this time. Default: none. */
        timeout?: Duration;
        /** From the dial until the headers are complete. Default: none beyond k6's 30 s for a dial. */
        connectTimeout?: Duration;
        /** As in {@link EventSourceOptions.idleTimeout}. */
        idleTimeout?: Duration;
    }

    /** One event of {@link open}. */
    export interface OpenEvent {
        /** The id of this very event, `""` where it has none. */
        id: string;
        /** `""` where it has none. */
        name: string;
        data: string;
        comment: string;
        /** ms since 1970 with a fraction. */
        receivedAt: number;
    }

    export interface OpenError {
        /** The message, as a Go error has it. */
        error(): string;
        message: string;
        reason: Reason;
        /** HTTP status of the response, 0 where there was none. */
        status: number;
    }

    /** What {@link open} hands to its function. */
    export interface Client {
        /** A 200 response of `text/event-stream` has begun. */
        on(event: "open", handler: () => void): void;
        on(event: "event", handler: (event: OpenEvent) => void): void;
        /**
         * No connection, no event stream, or one that broke. Never after `close()` or where
         * the server ended the stream after a whole block.
         */
        on(event: "error", handler: (error: OpenError) => void): void;
        /** Ends the stream; `open` returns after the running handler. */
        close(): void;
        /**
         * Runs once after `ms` > 0. The event loop and with it the global setTimeout stand
         * still during `open`; these do not.
         * @example client.setTimeout(() => client.close(), 60_000);
         */
        setTimeout(fn: () => void, ms: number): void;
        /** Runs every `ms` > 0 until `open` returns. */
        setInterval(fn: () => void, ms: number): void;
    }

    export interface OpenResponse {
        url: string;
        /** 0 where there was no response. */
        status: number;
        headers: Record<string, string>;
        /** `""` where the stream was closed by the script or ended by the server after a whole block. */
        error: string;
    }

    /**
     * Opens a stream and blocks the VU until it ends. `fn` runs first, before the dial, and
     * registers the handlers.
     *
     * Returns in every case: after `client.close()`, the end of the stream, a reset, a cut,
     * a status other than 200, a refused connection, a malformed URL. With k6's option
     * `throw` a request that got no response throws instead; a status never does.
     * An exception in `fn` or in a handler closes the stream and is thrown by `open`.
     *
     * @throws in the init context; for wrong arguments and parameters
     *
     * @example
     * import sse from "k6/x/sse";
     * import { check } from "k6";
     *
     * export default function () {
     *   const res = sse.open("http://localhost:8080/event/connect?id=a1", { idleTimeout: "40s" }, (client) => {
     *     let n = 0;
     *     client.on("event", () => { if (++n === 3) client.close(); });
     *     client.on("error", (e) => console.error(e.error()));
     *   });
     *   check(res, { "status is 200": (r) => r.status === 200 });
     * }
     */
    export function open(url: string, fn: (client: Client) => void): OpenResponse;
    export function open(url: string, params: OpenParams | null, fn: (client: Client) => void): OpenResponse;

    const sse: { open: typeof open; EventSource: typeof EventSource };
    export default sse;
}
