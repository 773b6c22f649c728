// The blocking function open of k6/x/soak.

declare module "k6/x/soak" {
  /** Parameters of {@link open}. Unknown names are ignored. */
  export interface OpenParams {
    /** Default `GET`, also for `""`. */
    method?: string;
    /** White space at its start and end is removed, as in xk6-sse. */
    body?: string;
    headers?: Record<string, string>;
    tags?: Record<string, string | number | boolean>;
    /** A `CookieJar` of `k6/http`, which replaces the jar of the VU. */
    jar?: object;
    /** Time limit of the **whole request**, after which the stream ends with an error. Default: none. */
    timeout?: Duration;
    /** Time limit from the dial until the headers are complete. Default: only k6's limit of 30 s for a dial. */
    connectTimeout?: Duration;
    /** As in {@link EventSourceOptions.idleTimeout}. */
    idleTimeout?: Duration;
    /** As in {@link EventSourceOptions.acceptEncoding}. */
    acceptEncoding?: AcceptEncoding;
    /** As in {@link EventSourceOptions.http}. */
    http?: HttpVersion;
    /** As in {@link EventSourceOptions.streamsPerConnection}. */
    streamsPerConnection?: number;
    /** As in {@link EventSourceOptions.followRedirects}. */
    followRedirects?: boolean;
    /** As in {@link EventSourceOptions.maxEventSize}. */
    maxEventSize?: number;
    /**
     * Accepts a 200 response with any type or without a type, as xk6-sse does. Default false: any type other than
     * `text/event-stream` is an error.
     * @example true // a service that sends text/plain
     */
    anyContentType?: boolean;
    /**
     * Calls the handlers of `event` for **every block** and counts it in `sse_event`, as xk6-sse does. This includes
     * blocks with only comments, such as many heartbeats, and blocks with an id or a name but no data. Default false:
     * only blocks with data are events, as in the standard.
     */
    everyBlock?: boolean;
  }

  /** One event of {@link open}. */
  export interface OpenEvent {
    /** The id of this event, `""` if it has none. */
    id: string;
    /** `""` if the event has no name. */
    name: string;
    data: string;
    /**
     * The comment lines of the block, joined by a line feed. With {@link OpenParams.everyBlock}, if the comments before
     * the first field exceed 512 bytes together, only the last ones are kept.
     */
    comment: string;
    /** Time of the read in ms since 1970, with a fraction. */
    receivedAt: number;
  }

  export interface OpenError {
    /** Returns the message, like the method `Error` of a Go error. */
    error(): string;
    message: string;
    reason: Reason;
    /** HTTP status of the response, 0 without a response. */
    status: number;
  }

  /** The stream that {@link open} passes to its function. */
  export interface Client {
    /** Called when a 200 response of type `text/event-stream` starts. */
    on(event: "open", handler: () => void): void;
    on(event: "event", handler: (event: OpenEvent) => void): void;
    /**
     * Called if the connection fails, the response is not an event stream, or the stream breaks. Not called after
     * `close()`, or if the server ended the stream after a whole event.
     */
    on(event: "error", handler: (error: OpenError) => void): void;
    /** Ends the stream; `open` returns after the running handler. */
    close(): void;
    /**
     * Calls `fn` once, after `ms` milliseconds (more than 0). `open` blocks the event loop and thus the global
     * setTimeout, but not this timer.
     * @example client.setTimeout(() => client.close(), 60_000);
     */
    setTimeout(fn: () => void, ms: number): void;
    /** Calls `fn` every `ms` milliseconds (more than 0) until `open` returns. */
    setInterval(fn: () => void, ms: number): void;
  }

  export interface OpenResponse {
    url: string;
    /** 0 without a response. */
    status: number;
    headers: Record<string, string>;
    /**
     * `""` if the script closed the stream, or the server ended it after a whole event. It starts with `interrupted` if
     * k6 ended the iteration.
     */
    error: string;
  }

  /**
   * Opens a stream and blocks the VU until it ends. `fn` runs first, before the dial, and
   * registers the handlers.
   *
   * **Unlike xk6-sse**, it does not count comments as events and accepts only the type
   * `text/event-stream`. `everyBlock` and `anyContentType` select the behavior of xk6-sse.
   *
   * `open` always returns: after `client.close()`, the end of the stream, a reset, a truncation,
   * a status other than 200, a refused connection, a malformed URL. With k6's option
   * `throw`, a request without a response throws instead; a status never throws.
   * An exception in `fn` or in a handler closes the stream, and `open` throws it.
   *
   * @throws in the init context; for wrong arguments and parameters
   *
   * @example
   * import sse from "k6/x/soak";
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
}
