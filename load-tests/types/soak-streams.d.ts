/**
 * The functions of k6/x/soak that open streams in Go: `hold` for endless streams, `finite` for responses that end by
 * themselves.
 */
declare module 'k6/x/soak' {
  /**
   * An action, at a time of a call of {@link hold}, on some of its streams. Its samples have the name of the phase as
   * the tag `scenario`. The streams do not share connections, and their lateness is not attributed to the service.
   *
   * | action | effect on each open stream | metrics |
   * |---|---|---|
   * | `vanish` | the connection stays half-open, as if the client's machine had lost power; the client does not reconnect, no end of the stream is requested, and no checks are made | `vanish_vanished` |
   * | `drop` | the client closes the connection, and reconnects after the reconnection time, without a limit on concurrent dials; the check `Received all messages` passes, because not every service resumes | `storm_dropped`, `storm_connect` (dial to headers), `storm_dial_delay` (delay of the dial by the load generator) |
   * | `dropAtOnce` | as `drop`, but the client reconnects at once | as `drop` |
   * | `slow` | the client reads slowly for some time, then as before; it does not reconnect, and no checks are made | `slow_started`, `slow_filled`, `slow_backlog`, `slow_closed`, `slow_closed_later`; with broadcasts `slow_accepted`, `slow_rejected`, `slow_due`, `slow_arrived`, `slow_repeated`, `slow_complete` |
   */
  export interface Phase {
    name: string;
    /** Milliseconds after the call of `hold`, which waits until all runners of the machine have called it. */
    at: number;
    action: 'vanish' | 'drop' | 'dropAtOnce' | 'slow';
    /** Numbers of the streams. Default: all streams of the call. */
    streams?: number[];
    /**
     * Milliseconds for which streams are slow (`for`), and for which they are then read fast before the phase ends
     * (`after`).
     */
    for?: number;
    after?: number;
    /** Read rate of a slow stream; 0: nothing is read. */
    bytesPerSecond?: number;
    /**
     * Upper limit of the measured size of a message in KB (0: no limit), and the backlog in KB at which a slow stream
     * counts as filled.
     */
    messageKB?: number;
    fillKB?: number;
    /** Broadcasts per second by the whole call while streams are slow; unused without `broadcast`. */
    broadcastsPerSecond?: number;
  }

  /**
   * A part of a call of {@link hold} that adds streams. Without broadcasts, the steps end after the first one with a
   * fault, and the metrics are `capacity_streams` and `capacity_connect`. With broadcasts, the step awaits each one,
   * and the metrics are `fanout_*`.
   */
  export interface Step {
    /** Tag `scenario` of its samples. */
    name: string;
    /** Number of open streams at its end. */
    streams: number;
    /** Milliseconds in which its streams open, evenly. */
    ramp?: number;
    /** Length in milliseconds, the ramp included. With broadcasts, the time before the first one. */
    for: number;
    broadcasts?: number;
    /** Milliseconds between two broadcasts. */
    every?: number;
    /** Milliseconds after the start of the first step, after which no further broadcast is sent. Default: no limit. */
    until?: number;
  }

  /** A request that makes the service send a message to all streams. Its body is the message. */
  export interface Broadcast {
    /** URL for a POST. The response has the number of streams as `delivered`. */
    url: string;
    headers?: Record<string, string>;
    /** Name of the event on the streams, which has a comment `sent=UNIX_MICROSECONDS`. */
    event: string;
    /** Size of the message in KB. Default: a short message. */
    kb?: number;
    /** Milliseconds within which the message must arrive on every stream. */
    within?: number;
  }

  /**
   * Options of {@link hold}. The configuration of load-tests/lib/config.js has most of them; its other properties are
   * ignored.
   */
  export interface HoldOptions {
    /** Number of the first stream, from 0. */
    from?: number;
    /** The number after the last stream. */
    to?: number;
    /** Numbers of the streams, instead of `from` and `to`. */
    streams?: number[];
    /** Milliseconds over which the streams open, evenly. Default, also for 0: as fast as the service accepts them. */
    ramp?: number;
    /** Milliseconds after which the ends of the streams are requested, or earlier if all have ended. */
    openFor?: number;
    /**
     * Milliseconds for which each stream is open, instead of `ramp` and `openFor`. The streams open one after the
     * other, each after the end of the previous one, and the first one after `delay` milliseconds.
     */
    lifetimes?: number[];
    delay?: number;
    /** Actions on the open streams. */
    phases?: Phase[];
    /** Parts that add streams, numbered from 0, instead of `ramp` and `openFor`. */
    steps?: Step[];
    /** Message that a phase or a step sends to all streams. */
    broadcast?: Broadcast;
    /** Turns the checks off. */
    unchecked?: boolean;
    /** Milliseconds without a byte after which the client closes a stream; 0: no limit. */
    idleTimeout: number;
    /** Seconds within which a stream must end after the request for its end. Then the client closes it. */
    endTimeout: number;
    /** Whether clients reconnect after losing a stream, and resume. */
    reconnect: boolean;
    /** Requested compression: `none`, `gzip` or `browser`, as the option of `EventSource`. */
    acceptEncoding?: string;
    /** HTTP version: `auto`, `1.1` or `2`, as the option `http` of `EventSource`. */
    httpVersion?: string;
    /** Maximum number of streams per HTTP/2 connection; 0: as many as the server allows. */
    streamsPerConnection?: number;
    /** Whether to follow redirects to another origin, as the option of `EventSource`. */
    followRedirects?: boolean;
    /** Prefix of the client ids: stream 7 has the id `PREFIX7`. */
    prefix: string;
  }

  /**
   * Keeps the streams of a virtual user open, in Go. It limits the number of concurrent dials, and counts the messages
   * of each stream in a ledger. After `openFor` it requests the ends, at most 20 at a time, and not while a noop is
   * due. Then it makes the checks `Get status was 200`, `Delete status was 200` (if the service has such a request) and
   * `Received all messages`.
   *
   * The metrics are the `sse_*` metrics of `EventSource`, and the metrics of `k6/http` for the requests that end
   * streams. The shard has the outcomes and durations of these requests, by server. An open stream uses no JavaScript.
   * Functions of a description are called once per attempt to connect.
   *
   * @example
   * import exec from 'k6/execution';
   * import { hold, settings } from 'k6/x/soak';
   * import { loadService } from './lib/service.js';
   *
   * const { service } = loadService();
   * const config = settings(service);
   *
   * export default async function () {
   *   const from = exec.scenario.iterationInTest * config.connectionsPerVU;
   *   await hold(service, { ...config, from, to: from + config.connectionsPerVU, openFor: 60_000 });
   * }
   *
   * @param service the result of {@link service}, or null for noop in a script that does not call it
   * @returns a promise that resolves when every stream has ended and its checks are made
   * @throws in the init context, for invalid options, and if the request for a stream cannot be created, for example if
   *   `token` of the description throws
   */
  export function hold(service: Service | null, options: HoldOptions): Promise<void>;

  /** Options of {@link finite}. `rate`, `concurrency` and `maxInFlight` are totals of all runners. */
  export interface FiniteOptions {
    /** URL of the service: `{base}` of its description. */
    baseUrl: string;
    /**
     * Values of `{prompt}`, used in turn. `{id}` in them is replaced by the id of the request. Empty: a default text
     * with that id.
     */
    prompts?: string[];
    /** Requests per second (open model); 0: closed model with `concurrency` open responses. */
    rate: number;
    concurrency: number;
    /** Seconds in which requests start. */
    seconds: number;
    /** Whether requests are a Poisson process with that rate and seed, instead of evenly spaced. */
    poisson?: boolean;
    seed?: number;
    /** Maximum responses in flight in the open model. Further requests are skipped and counted. */
    maxInFlight: number;
    /**
     * Seconds after which the client closes a response: with only heartbeats before its first content (`firstTimeout`)
     * or after it (`idleTimeout`), and from its terminal event on (`linger`).
     */
    firstTimeout: number;
    idleTimeout: number;
    linger: number;
    /** Seconds after the end for responses that are still open. */
    drain: number;
    /**
     * Limits of a response: milliseconds to the first content, milliseconds between two chunks, and total seconds. 0:
     * no limit.
     */
    maxFirst?: number;
    maxGap?: number;
    maxTotal?: number;
    /** Share of the responses, 0 to 1, that their clients abandon after `abandonAfter` chunks. */
    abandon?: number;
    abandonAfter?: number;
    /**
     * How clients abandon a response: close the connection (fin, the default), reset it, or vanish without further
     * acknowledgments.
     */
    abandonBy?: 'fin' | 'reset' | 'vanish';
    acceptEncoding?: string;
    httpVersion?: string;
  }

  /**
   * Makes requests whose responses end by themselves (`end.by: 'event'`), in Go, and checks each response up to its
   * terminal event. The results are in the shard of `--out soak=…`.
   *
   * @returns a promise that resolves when every response has ended
   * @throws in the init context, for invalid options, and for a service without `end.by: 'event'`
   */
  export function finite(service: Service, options: FiniteOptions): Promise<void>;
}
