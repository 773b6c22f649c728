// open of k6/x/soak, which blocks.

declare module "k6/x/soak" {
  /** Parameters of {@link open}. Unknown names are ignored. */
  export interface OpenParams {
    /** Default `GET`, which `""` is, too. */
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
     * Accepts a 200 response of any type, or without one, as xk6-sse does. Default false: another type than
     * `text/event-stream` is an error.
     * @example true // a service that says text/plain
     */
    anyContentType?: boolean;
    /**
     * Calls the handlers of `event`, and counts in `sse_event`, for **every block**, as xk6-sse does: also where it
     * has comments alone, as heartbeats often are, or an id or a name without data. Default false: an event is what has
     * data, as in the standard.
     */
    everyBlock?: boolean;
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
     * the server ended the stream after a whole event.
     */
    on(event: "error", handler: (error: OpenError) => void): void;
    /** Ends the stream; `open` returns after the running handler. */
    close(): void;
    /**
     * Runs once after `ms` > 0. During `open` the event loop, and with it the global
     * setTimeout, waits; these do not.
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
    /**
     * `""` where the stream was closed by the script or ended by the server after a whole event. Where k6 ended the
     * iteration it begins with `interrupted`.
     */
    error: string;
  }

  /**
   * Opens a stream and blocks the VU until it ends. `fn` runs first, before the dial, and
   * registers the handlers.
   *
   * **Other than xk6-sse** it counts no comments as events and accepts no other type than
   * `text/event-stream`. A script that relied on either says so: `everyBlock`, `anyContentType`.
   *
   * Returns in every case: after `client.close()`, the end of the stream, a reset, a cut,
   * a status other than 200, a refused connection, a malformed URL. With k6's option
   * `throw` a request that got no response throws instead; a status never does.
   * An exception in `fn` or in a handler closes the stream and is thrown by `open`.
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
