// EventSource of k6/x/soak, and its events.

declare module "k6/x/soak" {
  /** What all events have. */
  export interface SSEEvent {
    readonly type: string;
    readonly target: EventSource;
    /** The source while the event is dispatched, null afterwards. */
    readonly currentTarget: EventSource | null;
    readonly isTrusted: true;
    readonly bubbles: false;
    readonly cancelable: false;
    readonly defaultPrevented: false;
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
   * A source takes own properties (`source.room = id`) but no own symbols; a class may
   * extend it, but not override its attributes by accessors.
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
     * Begins to connect at once. What comes of it is told in later turns of the event
     * loop: handlers set right after the constructor, or in `onopen`, miss nothing.
     * @throws SyntaxError a URL that is not absolute, not http(s), or malformed, as with a port over 65535
     * @throws TypeError an unknown option, or a wrong value; the message names it; or without `new`
     * @throws in the init context
     */
    constructor(url: string, options?: EventSourceOptions);

    /** As given to the constructor. Where its host is not in ASCII, it is dialed and told elsewhere in punycode. */
    readonly url: string;
    /** The option of that name. */
    readonly withCredentials: boolean;
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
     * an event field gives. They run in the order in which they were added, the on… handler in the turn in which
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
     * Calls the listeners of `event.type` with an object of the script, whose `target` it sets (DOM standard, section 2.9). k6 has no
     * constructor `Event`. Returns true.
     * @throws TypeError without a type.
     */
    dispatchEvent(event: { type: string }): boolean;

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
     * @throws where this system cannot do that: on anything but Linux
     * @example sources.forEach((s, n) => n % 10 === 0 && s.slow(1024));
     */
    slow(bytesPerSecond: number): boolean;
  }
}
