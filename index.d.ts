// Types of the modules of this extension: k6/x/soak, k6/x/handshake and k6/x/requests.
/// <reference path="./load-tests/types/index.d.ts" />

/**
 * Differences between `EventSource` and the HTML Living Standard, section 9.2:
 *
 * - A URL must be absolute, because there is no document to resolve it against.
 * - There is no origin and therefore no CORS. `withCredentials` has no effect. Requests send the cookies of the virtual
 *   user. A redirect to another origin fails with reason `status` unless `followRedirects` is set.
 * - The delay before a reconnect is the reconnection time multiplied by a random factor in [1, 2). It doubles after
 *   repeated failures, up to 30 s, and honors `Retry-After`. The standard allows all of this. With `exactDelay`, the
 *   delay is the reconnection time.
 * - Events have no constructor and cannot be canceled. Their attributes are properties of the event itself.
 *   `EventTarget` is not in the prototype chain. Listeners have the option `once`, but not `signal`, `capture` or
 *   `passive`.
 * - An exception in a listener ends the iteration, as everywhere in k6.
 * - An event of more than `maxEventSize` bytes (default 1 MiB) closes the `EventSource` with reason `too_long`.
 * - All options except `withCredentials` are additions, and so are the attributes and methods marked "Not in the
 *   standard".
 *
 * Differences between `open` and xk6-sse:
 *
 * - Comments, and blocks without data, are not events; `everyBlock` makes them events.
 * - A response must have the type `text/event-stream`; `anyContentType` accepts any other type. The first refusal is
 *   logged.
 * - A stream that ends within an event, a line or a chunk causes an `error` event with reason `truncated`.
 * - Unknown fields are ignored. Lines end with CR, LF or both. Several `data` lines are joined by a line feed.
 * - The metric `sse_connecting` replaces `http_req_sending`. Further metrics are `sse_first_event`,
 *   `sse_connection_opened` and `sse_connection_closed`.
 */
export {};
