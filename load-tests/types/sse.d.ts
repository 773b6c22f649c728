/**
 * **Server-Sent Events for k6.**
 *
 * - {@link EventSource}: the API of browsers, on k6's event loop. One VU can keep thousands of sources open, because
 *   a source does not block timers or other sources.
 * - {@link open}: one stream that blocks the VU until it ends, compatible with xk6-sse. However, **xk6-sse counts
 *   comments as events** (usually heartbeats) and accepts any content type. Here, this behavior requires
 *   {@link OpenParams.everyBlock} and {@link OpenParams.anyContentType}.
 *
 * Connections go through k6's own dialer: `--local-ips`, `hosts`, DNS options, blocked hosts, `tls*` options, cookies
 * of the VU and `data_received` work as for `k6/http`. `--rps` limits attempts to connect; an attempt with redirects
 * counts once. `--http-debug` logs requests and response headers, not the streams. Streams use HTTP/1.1 or HTTP/2
 * ({@link EventSourceOptions.http}), and the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, like requests of k6/http.
 *
 * **Metrics**
 *
 * | metric | kind | meaning |
 * |---|---|---|
 * | `sse_connecting` | trend, ms | from the start of the dial (name resolution included) to the end of the headers, for opened streams |
 * | `sse_first_event` | trend, ms | from the end of the headers to the first event |
 * | `sse_event` | counter | dispatched events; blocks without data, such as comments, count only with {@link OpenParams.everyBlock} |
 * | `sse_connection_opened` | counter | event streams opened |
 * | `sse_then` | trend, ms | from the start of the dial to the end of the headers, for second requests ({@link EventSourceOptions.then}) with an expected status |
 * | `sse_connection_closed` | counter | ended attempts and streams, tag `reason` ({@link Reason}), tag `opened` (`true` for a stream, `false` for an attempt that did not open one) |
 *
 * Open streams = `sse_connection_opened` − `sse_connection_closed{opened:true}`.
 * Samples have the tags of the VU, your `tags`, and the enabled system tags `url`, `name`,
 * `method`, `status`, `proto`, `ip`, `tls_version`. `url` and `name` are the URL
 * without query, fragment and credentials, so that tags contain no ids. For ids in the path,
 * set `tags: { name: "…" }`, which replaces both.
 *
 * EventSource sums its events up and pushes one `sse_event` sample per second
 * and set of tags, and the rest when the iteration's last source has ended. `open`
 * pushes one sample per event, and `http_reqs` and `http_req_duration` for the whole
 * stream, as xk6-sse does (its `http_req_sending` is `sse_connecting` here).
 * k6 metrics are for dashboards; a `ledger` counts exactly.
 */
declare module "k6/x/soak" {
  /** A number of milliseconds up to 9e12, or a string such as `"10s"`, `"1m30s"`, `"500ms"`. */
  export type Duration = number | string;

  /**
   * The reason why a stream or an attempt ended.
   *
   * Streams: `server` (the server ended the stream outside an event; the last lines may be comments, `retry:` and
   * unknown fields), `truncated` (the stream ended inside a line, an event, a chunk, its Content-Length or compressed
   * data), `idle` (no byte within `idleTimeout`), `too_long` (an event over `maxEventSize`), `then` (the second request
   * of {@link EventSourceOptions.then} failed, or the event before it did not arrive), `cut` ({@link EventSource.drop},
   * {@link EventSource.vanish}, or a disconnect by the suite `resume`).
   *
   * Attempts: `connect_timeout`, `refused` (the dial failed or k6's options block the host), `dns`, `tls`, `proxy` (the
   * proxy of HTTP_PROXY or HTTPS_PROXY could not be reached, refused the connection, or did not respond with HTTP; the
   * message has its address and response), `status` (neither 200 nor 204), `content_type` (not `text/event-stream`, or
   * a compression that was not requested or is not supported), `no_content` (204), `renew`
   * ({@link EventSourceOptions.renew} threw).
   *
   * Both: `reset` (the connection broke), `client` (the script closed the stream),
   * `interrupted` (k6 ended the iteration, or a handler threw), `timeout` (the `timeout` of
   * {@link open} passed), `error` (any other error, such as invalid HTTP). `truncated` and
   * `too_long` also apply to response headers.
   */
  export type Reason =
    | "server" | "truncated" | "idle" | "too_long" | "then" | "cut"
    | "connect_timeout" | "refused" | "dns" | "tls" | "proxy" | "status" | "content_type" | "no_content" | "renew"
    | "reset" | "client" | "interrupted" | "timeout" | "error";
}

/** The module name of xk6-sse. `bin/k6` has it for scripts written for xk6-sse; `xk6 build --with` does not add it. */
declare module "k6/x/sse" {
  export { EventSource, open } from "k6/x/soak";

  const sse: Pick<typeof import("k6/x/soak"), "EventSource" | "open">;
  export default sse;
}
