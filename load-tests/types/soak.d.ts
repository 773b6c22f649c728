/**
 * Accounting in Go. An {@link EventSource} with a {@link Ledger} counts every message in it while it reads; no
 * JavaScript runs per message.
 *
 * @example
 * import { EventSource, Ledger, plan } from 'k6/x/soak';
 *
 * plan({ connections: 100, seconds: 60, noopInterval: 1, prefix: 'a-' });
 *
 * export default function () {
 *   const ledger = new Ledger(`a-${__VU}`);
 *   const source = new EventSource(`${__ENV.BACKEND_URL}/event/connect?id=${ledger.id}`, { ledger });
 *   setTimeout(() => source.close(), 10_000);
 * }
 *
 * Every 5 s, and when the last stream has ended, the runner pushes the sums of its ledgers as metrics. They carry the
 * tags of the run (`--tag`) and are for dashboards; the verdict depends on the shards alone. Each metric covers one
 * runner.
 *
 * | metric | kind | meaning |
 * |---|---|---|
 * | `soak_noops` | counter | noops received |
 * | `soak_noops_late` | counter | noops more than `lateMs` late |
 * | `soak_noops_expected` | gauge | received, missed and corrupted noops |
 * | `soak_noops_missed` | gauge | expected noops that have not arrived |
 * | `soak_noops_duplicated` | gauge | noops received again |
 * | `soak_noops_reordered` | gauge | noops received after a later one |
 * | `soak_noops_corrupted` | gauge | noops received with other content |
 * | `soak_messages` | counter | messages received, for a service other than noop |
 * | `soak_messages_late` | counter | messages more than `lateMs` late |
 * | `soak_messages_expected` | gauge | received, missed and corrupted messages |
 * | `soak_messages_missed` | gauge | skipped messages; the verdict adds published messages after which none arrived |
 * | `soak_messages_duplicated` | gauge | messages received again |
 * | `soak_messages_reordered` | gauge | messages received after a later one |
 * | `soak_messages_corrupted` | gauge | messages received with other content |
 * | `soak_published` | counter | messages that the publisher sent; 0 from runners without a publisher |
 * | `soak_confirmed` | counter | published messages that the service acknowledged |
 * | `soak_heartbeats` | counter | heartbeats by the description of the service |
 * | `soak_lateness_bucket` | counter | messages at most `le` seconds late, a tag from 0.001 to 5 and `+Inf`; buckets of all runners add up |
 * | `soak_lateness_p50_seconds` | gauge | lateness of noops since the last push, or time from publishing to receipt; p99 and max are defined in the same way |
 * | `soak_lateness_p99_seconds` | gauge | |
 * | `soak_lateness_max_seconds` | gauge | |
 * | `soak_streams_planned` | gauge | streams of the whole run, the same from each runner |
 * | `soak_runners_planned` | gauge | runners of the whole run |
 * | `soak_streams_completed` | gauge | streams that the server ended on request |
 * | `soak_streams_dropped` | gauge | streams that ended before that request |
 * | `soak_streams_refused` | gauge | streams that never opened |
 * | `soak_streams_reconnected` | gauge | streams opened after the loss of another one of the same client |
 * | `soak_streams_open` | gauge | open streams and pending attempts; 0 once the last has ended |
 * | `soak_remaining_seconds` | gauge | time until the first streams of the plan end |
 * | `soak_control_lateness_max_seconds` | gauge | longest lateness of the control group since the last push |
 * | `soak_action` | gauge | 1 from the planned start of an action (`--at`) on, 0 before; a tag `action` |
 * | `soak_responses` | counter | responses that have ended by themselves, by a tag `state`; `soak_streams_open` has the responses in flight |
 * | `gen_ai_client_operation_time_to_first_chunk_seconds_bucket` | counter | complete responses whose first content arrived within `le` seconds, a tag from 0.01 to 81.92 and `+Inf` |
 * | `gen_ai_client_operation_time_per_output_chunk_seconds_bucket` | counter | chunks of complete responses that arrived within `le` seconds after the previous chunk |
 * | `gen_ai_client_operation_duration_seconds_bucket` | counter | complete responses that ended within `le` seconds |
 * | `soak_reports` | counter | pushes of these metrics; if they stop while streams are open, the runner has ended |
 * | `soak_rss_bytes` | gauge | resident memory of the process |
 * | `soak_cpu_percent` | gauge | CPU of the process since the last push; 100 is one core |
 */
declare module 'k6/x/soak' {
  /**
   * The plan of a run, on which the verdict is based. The settings MAX_LATE, MAX_HIDDEN, MAX_OUTAGE and BACK_WITHIN come
   * from the environment only.
   */
  export interface Plan {
    // Generated: `go generate ./internal/plan`
    /** `CONNECTIONS`: streams over all runners, 0: iterations × `connectionsPerVU` of the options. */
    connections: number;
    /** `SECONDS`: length of the run in seconds; streams end 5 s before it. */
    seconds: number;
    /** `NOOP_INTERVAL`: seconds between two noops of one stream. */
    noopInterval: number;
    /** `RUNNERS`: k6 processes that share the streams. */
    runners: number;
    /** `CONNECTIONS_PER_VU`: streams per virtual user, at least 1. */
    connectionsPerVU: number;
    /** `BACKEND_URL`: the service, `http://` or `https://`. */
    backendUrl: string;
    /** `PREFIX`: of the client ids: `PREFIX0`, `PREFIX1`, … Letters, digits, `.`, `_`, `-`. */
    prefix: string;
    /** `TESTID`: name of the run, '' for none. */
    testid: string;
    /** `LATE_MS`: lateness in milliseconds above which a noop counts as late. */
    lateMs: number;
    /** `RECONNECT`: clients reconnect and resume by Last-Event-ID (always on if the service ends streams). */
    reconnect: boolean;
    /** `END_TIMEOUT`: time for a stream to end after the response to the DELETE in seconds. Default, also for 0: the longer of 15 s and 1.5 intervals. */
    endTimeout?: number;
    /** `TOPICS`: topics that the run publishes to, 0 for none. */
    topics?: number;
    /** `PUBLISH_RATE`: messages per second that the run publishes, 0 for none. */
    publishRate?: number;
    /** `TOKEN_TTL`: lifetime of tokens in seconds, 0: not passed. */
    tokenTtl?: number;
    /** `ACCEPT_ENCODING`: compression that streams accept: `none`, `gzip` or `browser`. */
    acceptEncoding?: string;
    /** `HTTP_VERSION`: HTTP version of streams: `auto`, `1.1` or `2`. */
    httpVersion?: string;
    /** `STREAMS_PER_CONNECTION`: maximum number of streams per HTTP/2 connection, 0: limit of the server. */
    streamsPerConnection?: number;
    /** `FOLLOW_REDIRECTS`: whether streams follow redirects to another origin. */
    followRedirects?: boolean;
    /** `MESSAGE_KB`: size of broadcast messages in KB; the bundled backend accepts up to 63. */
    messageKB?: number;
  }

  /** The settings of a run, and values that are derived from these and from the description of the service. */
  export interface Settings extends Required<Plan> {
    /** Time in ms without data after which a client gives up a stream. */
    readonly idleTimeout: number;
    /** Time in s that a runner may need to end its streams, for the `maxDuration` of a scenario. */
    readonly teardown: number;
  }

  /**
   * Sets the plan of a run of the original protocol, and returns its settings. Settings that `values` omits come from
   * `soak run` or, under `k6 run`, from the environment, or have their defaults. Call it in the init context. Every
   * virtual user must set the same plan.
   *
   * @throws with one sentence if a setting is out of bounds, if the plan differs from an earlier one, or outside of the init context.
   */
  export function plan(values?: Partial<Plan>): Settings;

  /**
   * As {@link plan}, for a service. The interval is that of published messages; without a publisher it is
   * `message.every`, or else `heartbeat.every`.
   *
   * @throws also if a setting does not fit the description.
   */
  export function settings(service: Service, values?: Partial<Plan>): Settings;

  /**
   * Returns the settings that only this script has. PROFILE selects their defaults (`full` or `smoke`). `soak run` or,
   * under `k6 run`, the environment overrides them. A number in seconds may be a duration, such as `90s`.
   *
   * @throws if a setting does not have the type of its default, or is negative.
   */
  export function profile<Values extends Record<string, number | number[] | string>>(profiles: { smoke: Values; full: Values }): {
    name: string;
    values: Values;
    /** The values as text, for {@link suite}. */
    parameters: Record<string, string>;
    /** Number of runners that share the load. */
    runners: number;
  };

  /** Returns the text of a setting of the run, '' for none. */
  export function setting(name: string): string;

  /**
   * Returns the URL in a setting, such as BACKEND_URL, in its normal form.
   *
   * @throws if it is missing or not the URL of a service.
   */
  export function url(name: string): string;

  /** A description of a service, checked and compiled. */
  export interface Service {
    readonly name: string;
    /** Whether each message has a number. */
    readonly numbered: boolean;
    /** Whether all clients receive the same messages and are compared with each other. */
    readonly shared: boolean;
    /** Whether the description defines how a message is published. */
    readonly published: boolean;
    /** Whether published messages contain `{padding}`, by which a run sets their size. */
    readonly padded: boolean;
    /** Seconds between two messages, 0 if messages are not sent at an interval. */
    readonly every: number;
    /** Seconds between two heartbeats, 0 if the description has none. */
    readonly heartbeatEvery: number;
    readonly endBy: 'client' | 'request' | 'server' | 'event';
    /** Minimum lifetime of a stream in seconds, 0 unless `endBy` is `server`. */
    readonly lifetime: number;
  }

  /**
   * Checks and compiles the description of a service. docs/services.md has its fields. Call it in the init context.
   *
   * @example
   * import { service } from 'k6/x/soak';
   * import nchan from './services/nchan.js';
   *
   * const compiled = service(nchan);
   *
   * @throws for an invalid description, with all mistakes, and outside the init context.
   */
  export function service(description: import('./service').ServiceDescription): Service;

  /** A part of a suite with its own load. Properties that do not apply are left out. */
  export interface Stage {
    /** Name of its k6 scenario: letters, digits, `_`, `-`. */
    name: string;
    /** Title in reports, such as `200 requests/s`. */
    title: string;
    /** Purpose in the suite, such as `load`, `warmup`, `health`. */
    kind: string;
    /** One of several targets. */
    target?: string;
    /** Seconds after the start of the run. */
    start: number;
    /** Planned or maximum length in seconds. */
    seconds: number;
    /** Requests per second of all runners. */
    rate?: number;
    /** Concurrent requests of all runners. */
    concurrency?: number;
    /** Total number of requests. */
    requests?: number;
    /** Maximum connections of all runners in an open model; `concurrency` in other models. */
    connections?: number;
    /** Seconds that a due request waits for a connection before it is dropped. 0: it does not wait. */
    patience?: number;
  }

  /** The declaration of a suite other than the soak; see docs/architecture.md. */
  export interface Suite {
    name: string;
    profile: string;
    /** Tags by which every metric is split. At most 5000 combinations are allowed. */
    splitBy: string[];
    /** Settings with their parsed values. */
    parameters: Record<string, string>;
    stages: Stage[];
  }

  /**
   * Declares the suite. Call it in the init context. Every virtual user must declare the same suite.
   *
   * @throws if it differs from an earlier one, and outside the init context.
   */
  export function suite(suite: Suite): void;

  /**
   * An action, at a time of a call of {@link hold}, on some of its streams. Its samples have the name of the phase as the tag
   * `scenario`. The streams do not share connections, and their lateness is not attributed to the service.
   *
   * | action | effect on each open stream | metrics |
   * |---|---|---|
   * | `vanish` | the connection stays half-open, like that of a machine without power; the client does not reconnect, the service is not asked to end the stream, and no checks are made | `vanish_vanished` |
   * | `drop` | the client closes the connection, and reconnects after the reconnection time, without a limit on concurrent dials; the check `Received all messages` passes, because not every service resumes | `storm_dropped`, `storm_connect` (dial to headers), `storm_waited` (delay of the dial by the load generator) |
   * | `dropAtOnce` | as `drop`, but the client reconnects at once | as `drop` |
   * | `slow` | the client reads slowly for some time, then as before; it does not reconnect, and no checks are made | `slow_begun`, `slow_filled`, `slow_behind`, `slow_cut`, `slow_cut_unseen`; with broadcasts `slow_taken`, `slow_untaken`, `slow_due`, `slow_arrived`, `slow_again`, `slow_whole` |
   */
  export interface Phase {
    name: string;
    /** Milliseconds after the call of `hold`. */
    at: number;
    action: 'vanish' | 'drop' | 'dropAtOnce' | 'slow';
    /** Numbers of the streams; left out: all of the call. */
    streams?: number[];
    /** Milliseconds for which streams are slow (`for`), and for which they are then read fast before the phase ends (`after`). */
    for?: number;
    after?: number;
    /** Read rate of a slow stream; 0: nothing is read. */
    bytesPerSecond?: number;
    /** Size of a message in KB (0: the mean on the other streams), and the backlog in KB at which a slow stream counts as filled. */
    messageKB?: number;
    fillKB?: number;
    /** Broadcasts of the call while streams are slow; without them the run publishes the messages. */
    broadcastsPerSecond?: number;
  }

  /**
   * A part of a call of {@link hold} that adds streams. Without broadcasts, the steps end after the first one with a
   * fault, and the metrics are `capacity_streams` and `capacity_connect`. With broadcasts, the step awaits each, and
   * the metrics are `fanout_*`.
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
  }

  /** A request that makes the service send a message to all streams. Its body is the message. */
  export interface Broadcast {
    /** URL for a POST. The response has the number of streams as `delivered`. */
    url: string;
    headers?: Record<string, string>;
    /** Name of the event on the streams, which has a comment `sent=UNIX_MICROSECONDS`. */
    event: string;
    /** Size of the message in KB; left out: short. */
    kb?: number;
    /** Milliseconds within which it must arrive on every stream. */
    within?: number;
  }

  /** Options of {@link hold}. The configuration of load-tests/lib/config.js has most of them; its other properties are ignored. */
  export interface HoldOptions {
    /** Number of the first stream, from 0. */
    from?: number;
    /** The number after the last stream. */
    to?: number;
    /** Numbers of the streams, instead of `from` and `to`. */
    streams?: number[];
    /** Milliseconds over which the streams open, evenly; 0 or left out: as fast as the service accepts them. */
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
   * Keeps the streams of a virtual user open, in Go. It connects each stream with a limited number of concurrent
   * dials, and counts its messages in a ledger. After `openFor` it requests the ends, 20 at a time and not while a
   * noop is due. Then it makes the checks `Get status was 200`, `Delete status was 200` (if the service has such a
   * request) and `Received all messages`.
   *
   * The metrics are those of an `EventSource` (`sse_*`), and those of `k6/http` for the requests that end streams.
   * The shard has the outcomes and durations of these requests, by server. An open stream uses no JavaScript.
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
   * @throws if the request for a stream cannot be created, for example if `token` of the description throws
   */
  export function hold(service: Service | null, options: HoldOptions): Promise<void>;

  /** Options of {@link finite}. Numbers are totals of all runners. */
  export interface FiniteOptions {
    /** URL of the service: `{base}` of its description. */
    baseUrl: string;
    /** Values of `{prompt}`, used in turn. `{id}` in them is replaced by the id of the request. Empty: a default text with that id. */
    prompts?: string[];
    /** Requests per second (open model); 0: closed model with {@link concurrency} open responses. */
    rate: number;
    concurrency: number;
    seconds: number;
    /** Whether requests are a Poisson process with that rate and seed, instead of evenly spaced. */
    poisson?: boolean;
    seed?: number;
    /** Maximum responses in flight in the open model. Further requests are skipped and counted. */
    maxInFlight: number;
    /** Seconds with only heartbeats after which the client closes a response: before its first content, after it, and after its terminal event. */
    firstTimeout: number;
    idleTimeout: number;
    linger: number;
    /** Seconds after the end for responses that are still open. */
    drain: number;
    /** Limits of a response: milliseconds to the first content, milliseconds between two chunks, and total seconds. 0: no limit. */
    maxFirst?: number;
    maxGap?: number;
    maxTotal?: number;
    /** Share of the responses, 0 to 1, that their clients abandon after `abandonAfter` chunks. */
    abandon?: number;
    abandonAfter?: number;
    /** How clients abandon a response: close the connection (fin, the default), reset it, or vanish without further acknowledgements. */
    abandonBy?: 'fin' | 'reset' | 'vanish';
    acceptEncoding?: string;
    httpVersion?: string;
  }

  /**
   * Makes requests whose responses end by themselves (`end.by: 'event'`), in Go, and checks each response up to its
   * terminal event. The results are in the shard of `--out soak=…`.
   *
   * @returns a promise that resolves when every response has ended
   */
  export function finite(service: Service, options: FiniteOptions): Promise<void>;

  /** The state of a connection. Only `completed` is a successful end. */
  export type State =
    | 'planned'
    | 'connecting'
    | 'open'
    /** A stream was lost, a reconnect follows. */
    | 'waiting'
    /** The server ended the stream on request. */
    | 'completed'
    /** The stream ended before the request for its end. */
    | 'dropped'
    /** No stream was ever opened. */
    | 'refused'
    /** The client closed the stream: the run was interrupted, or the stream did not end after the request for its end. */
    | 'unfinished';

  /**
   * The ledger of one client with all its streams. All properties are read-only and have current values. Counts are
   * of noops.
   *
   * Noops with a decimal `id:` (1, 2, 3 … per client) are counted by their number. Otherwise one noop is expected per
   * `noopInterval`.
   */
  export class Ledger {
    /** @throws in the init context, without an id, or before {@link plan}. */
    constructor(id: string);
    readonly id: string;
    readonly state: State;
    /** received + missed + corrupted */
    readonly expected: number;
    /** Distinct noops whose data was exactly `0`. */
    readonly received: number;
    /** Expected by number or interval, but not received. A loss at the end is known only after the end of the stream. */
    readonly missed: number;
    readonly duplicated: number;
    readonly reordered: number;
    /** Received with other data than `0`. */
    readonly corrupted: number;
    /** Received more than `lateMs` after their interval. */
    readonly late: number;
    /** All counts in one line, for a log. */
    toString(): string;
  }
}
