// EventSource of k6/x/soak, and its events.

declare module "k6/x/soak" {
  /** The attributes of all events. */
  export interface SSEEvent {
    readonly type: string;
    readonly target: EventSource;
    /** The source while the event is dispatched, null afterwards. */
    readonly currentTarget: EventSource | null;
    readonly isTrusted: true;
    readonly bubbles: false;
    readonly cancelable: false;
    readonly defaultPrevented: false;
    /** Time when the client read the event, not when the handler ran, in ms since 1970 with a fraction. */
    readonly timeStamp: number;
  }

  /** HTML 9.2.6: one dispatched event. Invalid UTF-8 is replaced by U+FFFD. */
  export interface MessageEvent extends SSEEvent {
    /** The values of the data lines, joined by a line feed. */
    readonly data: string;
    /** The id of the event or, if it has none, the latest earlier id, even from before a reconnect. */
    readonly lastEventId: string;
    /** The origin of the URL after redirects, such as `"https://example.com:8443"`. */
    readonly origin: string;
    /**
     * The comment lines of the block, joined by a line feed; `""` for none. If the source has a `ledger`, and the
     * comments before the first field exceed 512 bytes together, only the last ones are kept. Not in the standard.
     */
    readonly comment: string;
    /** Time when the read that completed the event returned, in ms since 1970 with a fraction. Not in the standard. */
    readonly receivedAt: number;
  }

  /** The second request of a stream got a response with an expected status. Not in the standard. */
  export interface ThenEvent extends SSEEvent {
    readonly type: "then";
    /**
     * HTTP status of that response.
     * @example 204
     */
    readonly status: number;
  }

  /** A stream or an attempt ended. `readyState` is CONNECTING if another follows, CLOSED otherwise. */
  export interface ErrorEvent extends SSEEvent {
    readonly type: "error";
    readonly reason: Reason;
    /** A description of the error. For an error status it includes the text of the server, if any. */
    readonly message: string;
    /** HTTP status of the response, 0 without a response. */
    readonly status: number;
    readonly willReconnect: boolean;
    /** Milliseconds until the next attempt; null if none follows. */
    readonly retryMs: number | null;
  }

  export type Listener<E> = ((this: EventSource, event: E) => void) | { handleEvent(event: E): void };

  /**
   * HTML 9.2.2, on k6's event loop. The iteration continues until all its sources are
   * closed.
   *
   * Handlers run between other tasks of the VU, never during a task. `readyState` and
   * `status` change only between tasks. An exception in a handler ends the iteration, as in
   * `k6/websockets`, and closes all its sources with reason `interrupted`. When k6 ends
   * the iteration (`gracefulStop`, Ctrl-C), sockets are closed at once and no handler runs.
   *
   * Scripts can add properties to a source (`source.room = id`), and a class can extend `EventSource`.
   *
   * @example
   * import { EventSource } from "k6/x/soak";
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
     * Starts to connect at once. Events are dispatched in later turns of the event
     * loop, so handlers that are set right after the constructor, or in `onopen`, miss no event.
     * For a URL with a scheme other than http(s), an `error` event follows, and the source is CLOSED.
     * @throws SyntaxError for a URL that is not absolute or is malformed, such as a port over 65535
     * @throws TypeError for an unknown option or an invalid value, which the message names, and without `new`
     * @throws in the init context
     */
    constructor(url: string, options?: EventSourceOptions);

    /**
     * The argument of the constructor, or the latest URL that `renew` returned. In dials, tags and messages, a host
     * that is not ASCII is in punycode.
     */
    readonly url: string;
    /** The value of the option `withCredentials`. */
    readonly withCredentials: boolean;
    readonly readyState: 0 | 1 | 2;
    /** HTTP status of the last response, 0 before the first. Not in the standard. */
    readonly status: number;
    /** Milliseconds from the dial to the headers of the latest stream, 0 before the first. Not in the standard. */
    readonly connectMs: number;
    /**
     * Whether the source reconnects after the end of its stream. Scripts can change it at any time;
     * set it to false before you ask the server to end the stream. Setting it to false during
     * the wait before an attempt closes the source. Not in the standard.
     */
    reconnect: boolean;
    /**
     * The option `idleTimeout` in milliseconds, 0 for none. Scripts can change it at any time. Set it
     * to 0 if another deadline applies, for example after you asked the server to end the stream. If a
     * stream was opened without a timeout, a new timeout applies only after the next reconnect. Not in the standard.
     */
    idleTimeout: number;

    onopen: ((this: EventSource, event: SSEEvent) => void) | null;
    /** Called for events without a name and for events named `message`. */
    onmessage: ((this: EventSource, event: MessageEvent) => void) | null;
    onerror: ((this: EventSource, event: ErrorEvent) => void) | null;

    /**
     * Adds a listener for `open`, `error`, `message`, `then` ({@link EventSourceOptions.then}) or the name
     * of an event. Listeners run in the order in which they were added. An on… handler has the position at which
     * it was first set.
     * @example source.addEventListener("stock", (e) => console.log(e.data));
     * @example source.addEventListener("then", (e) => console.log(`subscribed: ${e.status}`));
     */
    addEventListener(type: "open", listener: Listener<SSEEvent> | null, options?: { once?: boolean }): void;
    addEventListener(type: "error", listener: Listener<ErrorEvent> | null, options?: { once?: boolean }): void;
    addEventListener(type: "then", listener: Listener<ThenEvent> | null, options?: { once?: boolean }): void;
    addEventListener(type: string, listener: Listener<MessageEvent> | null, options?: { once?: boolean }): void;
    removeEventListener(type: string, listener: Listener<any> | null): void;
    /**
     * Calls the listeners of `event.type` with an object of the script, and sets its `target` (DOM standard, section
     * 2.9). k6 has no constructor `Event`. Returns true.
     * @throws TypeError if the object has no type.
     */
    dispatchEvent(event: { type: string }): boolean;

    /** Closes the connection without waiting. No event follows. */
    close(): void;

    /**
     * Drops the open stream, like a client that loses its network for a moment: it sends a FIN, or RST_STREAM on a
     * shared HTTP/2 connection, and dispatches an `error` event with reason `cut`. If the source reconnects, it sends
     * the last event ID. With `true` it reconnects at once, otherwise after the reconnection time with its random
     * factor. The limit of concurrent dials (`connectTimeout`) does not apply, so that thousands of clients can
     * reconnect together. Not in the standard.
     * @returns false, without an effect, if no stream is open
     * @example setTimeout(() => sources.forEach((s) => s.drop(true)), 60_000); // a storm of reconnects
     */
    drop(immediate?: boolean): boolean;

    /**
     * Vanishes, like a machine that loses power. The connection stays open, but it sends no packets, not even
     * acknowledgments, and drops received data unread. An `error` event with reason `cut` follows. The connection ends
     * with a reset when this process ends. Needs no privileges. Not in the standard.
     * @returns false, without an effect, if no stream is open
     * @throws if the system does not support it: on every system except Linux, and in some sandboxes; and over HTTP/2,
     *   unless {@link EventSourceOptions.streamsPerConnection} is 1
     */
    vanish(): boolean;

    /**
     * Limits the read rate of the open stream, like a client with a slow network or a client that hangs. Unread data
     * fills the receive buffer of the connection, and then the buffer of the server. Meanwhile `idleTimeout` does not
     * apply, and `drop` and `vanish` have no effect. When the server ends the connection, its remaining data is read at
     * once. Not in the standard.
     * @param bytesPerSecond 0: no data is read; `Infinity`: no limit, as before
     * @returns false, without an effect, if no stream is open
     * @throws if the system does not support it: on every system except Linux; over HTTP/2, unless
     *   {@link EventSourceOptions.streamsPerConnection} is 1; and over TLS through a proxy that itself uses TLS
     * @example sources.forEach((s, n) => n % 10 === 0 && s.slow(1024));
     */
    slow(bytesPerSecond: number): boolean;
  }
}
