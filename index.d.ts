// Types of the modules of this extension: k6/x/soak, k6/x/handshake and k6/x/requests.
/// <reference path="./load-tests/types/index.d.ts" />

/**
 * `EventSource` differs from the HTML Living Standard, section 9.2, in this:
 *
 * - A URL must be absolute: there is no document to resolve it against.
 * - There is no origin, so no CORS: `withCredentials` has no effect, and cookies are those of the virtual user. A redirect to another
 *   origin fails with reason `status` unless `followRedirects` is set.
 * - A reconnect waits for the reconnection time times a random factor in [1, 2), doubles it after repeated failures up to 30 s, and honours
 *   `Retry-After`, all of which the standard allows. `exactDelay` turns this off.
 * - Events have no constructor and cannot be cancelled; their attributes are properties of the event itself. `EventTarget` is not in the
 *   prototype chain; listeners have the option `once`, but not `signal`, `capture` or `passive`.
 * - An exception in a listener ends the iteration, as everywhere in k6.
 * - An event of more than `maxEventSize` bytes (default 1 MiB) ends the stream for good with reason `too_long`.
 * - Options, attributes and methods marked "Not in the standard" are additions.
 *
 * `open` differs from xk6-sse in this:
 *
 * - Comments, and blocks without data, are not events; `everyBlock` makes them events.
 * - A response must have the type `text/event-stream`; `anyContentType` accepts any other. The first refusal is logged.
 * - A stream that ends within an event, a line or a chunk is an `error` event with reason `truncated`, not a normal end.
 * - Unknown fields are ignored, not errors; lines end with CR, LF or both; several `data` lines are joined by a line feed.
 * - `http_req_sending` is `sse_connecting`. Further metrics: `sse_first_event`, `sse_connection_opened`, `sse_connection_closed`.
 */
export {};
