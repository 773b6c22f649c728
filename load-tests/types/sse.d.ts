/**
 * **Server-Sent Events for k6.**
 *
 * - {@link EventSource}: the browser's, on k6's event loop. One VU holds thousands.
 *   Timers and other sources continue meanwhile.
 * - {@link open}: one stream that blocks the VU until it ends, compatible with xk6-sse, but **xk6-sse counts comments
 *   as events** (heartbeats, most often) and takes any content type: {@link OpenParams.everyBlock} and
 *   {@link OpenParams.anyContentType} do the same here.
 *
 * Connections go through k6's own dialer: `--local-ips`, `hosts`, DNS options, blocked
 * hosts, `tls*` options, cookies of the VU and `data_received` work as for `k6/http`.
 * `--rps` holds for attempts to connect, one that is redirected counting once, and `--http-debug` logs requests and
 * response heads, not the streams themselves. Streams speak HTTP/1.1 or HTTP/2
 * ({@link EventSourceOptions.http}), and go through the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, as the requests of k6/http do.
 *
 * **Metrics**
 *
 * | metric | kind | meaning |
 * |---|---|---|
 * | `sse_connecting` | trend, ms | dial begun (name resolution included) to headers complete, of streams that opened |
 * | `sse_first_event` | trend, ms | headers complete to the first event |
 * | `sse_event` | counter | events dispatched (blocks without data, as comments alone, are none; {@link OpenParams.everyBlock} counts them) |
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
declare module "k6/x/soak" {
  /** A number of milliseconds, or a string such as `"10s"`, `"1m30s"`, `"500ms"`. */
  export type Duration = number | string;

  /**
   * Why a stream or an attempt ended.
   *
   * A stream: `server` (the server ended it, and no event was lost by that: lines of comments, `retry:` and
   * unknown fields may come last), `truncated` (it ended inside a line, an event, a chunk, its Content-Length or its compression), `idle` (`idleTimeout` without
   * one byte), `too_long` (an event over `maxEventSize`), `then` (the second request of
   * {@link EventSourceOptions.then} failed, or the event that it waits for did not come),
   * `cut` ({@link EventSource.drop}, {@link EventSource.vanish}; or the suite `resume` cut it, to see it resume).
   *
   * An attempt: `connect_timeout`, `refused` (the dial failed or k6's options block the
   * host), `dns`, `tls`, `proxy` (the proxy of HTTP_PROXY or HTTPS_PROXY could not be reached, refused, or
   * answered no HTTP; the message names it and has what it said), `status` (neither 200 nor 204), `content_type` (not
   * `text/event-stream`, or compressed in a way that was not asked for), `no_content` (204).
   *
   * Either: `reset` (the connection broke), `client` (the script closed it),
   * `interrupted` (k6 ended the iteration, or a handler threw), `renew`
   * ({@link EventSourceOptions.renew} threw), `timeout` (`timeout` of
   * {@link open}), `error` (anything else, such as broken HTTP). `truncated` and
   * `too_long` are also told of response headers.
   */
  export type Reason =
    | "server" | "truncated" | "idle" | "too_long" | "then" | "cut"
    | "connect_timeout" | "refused" | "dns" | "tls" | "proxy" | "status" | "content_type" | "no_content"
    | "renew" | "reset" | "client" | "interrupted" | "timeout" | "error";
}

/** The name of xk6-sse, which `bin/k6` has for scripts that were written for it. `xk6 build --with` does not add it. */
declare module "k6/x/sse" {
  export { EventSource, open } from "k6/x/soak";

  const sse: Pick<typeof import("k6/x/soak"), "EventSource" | "open">;
  export default sse;
}
