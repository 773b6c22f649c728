/**
 * Accounting in Go. An {@link EventSource} counts every message that it reads in its {@link Ledger}. No JavaScript runs
 * per message.
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
 * At the start of the first stream, every 5 s, and when the last stream has ended, the runner pushes the sums of its
 * ledgers as metrics. They carry the tags of the run (`--tag`) and are for dashboards; the verdict depends on the
 * shards alone. Each metric covers one runner.
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
 * | `soak_heartbeats` | counter | heartbeats, as the description of the service defines them |
 * | `soak_lateness_bucket` | counter | messages at most `le` seconds late; the tag `le` is from 0.001 to 5, or `+Inf`; buckets of all runners add up |
 * | `soak_lateness_p50_seconds` | gauge | lateness of noops since the last push, or time from publishing to receipt; p99 and max are defined in the same way |
 * | `soak_lateness_p99_seconds` | gauge | |
 * | `soak_lateness_max_seconds` | gauge | |
 * | `soak_streams_planned` | gauge | streams of the whole run, the same from each runner |
 * | `soak_runners_planned` | gauge | runners of the whole run |
 * | `soak_streams_completed` | gauge | streams that ended as planned |
 * | `soak_streams_dropped` | gauge | streams that ended before their end was requested |
 * | `soak_streams_refused` | gauge | streams that never opened |
 * | `soak_streams_reconnected` | gauge | streams opened after the loss of another one of the same client |
 * | `soak_streams_open` | gauge | open streams and pending attempts; 0 once the last has ended |
 * | `soak_remaining_seconds` | gauge | time until the first streams of the plan end |
 * | `soak_control_lateness_max_seconds` | gauge | longest lateness of the control group since the last push |
 * | `soak_action` | gauge | 1 from the planned start of an action (`--at`) on, 0 before; a tag `action` |
 * | `soak_responses` | counter | finite responses that have ended, by a tag `state`; `soak_streams_open` has the responses in flight |
 * | `gen_ai_client_operation_time_to_first_chunk_seconds_bucket` | counter | complete responses whose first content arrived within `le` seconds; the tag `le` is from 0.01 to 81.92, or `+Inf` |
 * | `gen_ai_client_operation_time_per_output_chunk_seconds_bucket` | counter | chunks of complete responses that arrived within `le` seconds after the previous chunk |
 * | `gen_ai_client_operation_duration_seconds_bucket` | counter | complete responses that ended within `le` seconds |
 * | `soak_reports` | counter | pushes of these metrics; if they stop while streams are open, the runner has ended |
 * | `soak_rss_bytes` | gauge | resident memory of the process |
 * | `soak_cpu_percent` | gauge | CPU of the process since the last push; 100 is one core |
 */
declare module 'k6/x/soak' {
  /**
   * The plan of a run, on which the verdict is based. The settings MAX_LATE, MAX_HIDDEN, MAX_OUTAGE and BACK_WITHIN
   * come from the environment only.
   */
  export interface Plan {
    // Generated: `go generate ./internal/plan`
    /** `CONNECTIONS`: streams over all runners, 0: iterations × `connectionsPerVU` of the options. */
    connections: number;
    /** `SECONDS`: length of the run in seconds; streams end 5 s earlier. */
    seconds: number;
    /** `NOOP_INTERVAL`: seconds between two noops of one stream. */
    noopInterval: number;
    /** `RUNNERS`: k6 processes that share the streams. */
    runners: number;
    /** `CONNECTIONS_PER_VU`: streams per virtual user, at least 1. */
    connectionsPerVU: number;
    /** `BACKEND_URL`: the service, `http://` or `https://`. */
    backendUrl: string;
    /** `PREFIX`: prefix of the client ids: `PREFIX0`, `PREFIX1`, … Letters, digits, `.`, `_`, `-`. */
    prefix: string;
    /** `TESTID`: name of the run, '' for none. */
    testid: string;
    /** `LATE_MS`: lateness in milliseconds above which a message counts as late. */
    lateMs: number;
    /** `RECONNECT`: reconnect if disconnected (set by resume, --token-ttl, or the description). */
    reconnect: boolean;
    /** `END_TIMEOUT`: maximum time from the end request's response to the stream's end, in seconds. Default, also for 0: the longer of 15 s and 1.5 intervals. */
    endTimeout?: number;
    /** `TOPICS`: topics that the run publishes to, 0 for none. */
    topics?: number;
    /** `PUBLISH_RATE`: messages per second that the run publishes, 0 for none. */
    publishRate?: number;
    /** `TOKEN_TTL`: lifetime of tokens in seconds, 0: not passed. */
    tokenTtl?: number;
    /** `ACCEPT_ENCODING`: accepted compression of streams: `none`, `gzip` or `browser`. */
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
    /** Time in ms without data after which a client closes a stream. */
    readonly idleTimeout: number;
    /** Time in s that a runner may need to end its streams, for the `maxDuration` of a scenario. */
    readonly teardown: number;
  }

  /**
   * Sets the plan of a run of the original protocol, and returns its settings. Settings that `values` omits come from
   * `soak run` or, under `k6 run`, from the environment, or have their defaults. Call it in the init context. Every
   * virtual user must set the same plan.
   *
   * @throws with one sentence if a setting is out of bounds, if the plan differs from an earlier one, or outside of the
   *   init context.
   */
  export function plan(values?: Partial<Plan>): Settings;

  /**
   * As {@link plan}, for a service. The interval comes from the publisher or, without one, from `message.every`
   * or `heartbeat.every`.
   *
   * @throws also if a setting does not fit the description.
   */
  export function settings(service: Service, values?: Partial<Plan>): Settings;

  /**
   * Returns the settings that only the script of this suite has. PROFILE selects their defaults (`full` or `smoke`).
   * `soak run` or, under `k6 run`, the environment overrides them. A number in seconds may be a duration, such as
   * `90s`.
   *
   * @throws if PROFILE is neither `full` nor `smoke`, if the suite has no such setting, or if a value is out of bounds.
   */
  export function profile<Values extends Record<string, number | number[] | string>>(suite: string, profiles: { smoke: Values; full: Values }): {
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

  /** A part of a suite with its own load. Properties that do not apply are omitted. */
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
    /** Tags by which every metric is split. Beyond 5000 sums, new combinations of tags share one sum per metric. */
    splitBy: string[];
    /** Settings with their parsed values. */
    parameters: Record<string, string>;
    stages: Stage[];
  }

  /**
   * Declares the suite. Call it in the init context. Every virtual user must declare the same suite.
   *
   * @throws if it has no name, if the names of its stages are not unique, if it differs from an earlier one, and
   *   outside the init context.
   */
  export function suite(suite: Suite): void;

  /** The state of a client. Only `completed` is a successful end. */
  export type State =
    | 'planned'
    | 'connecting'
    | 'open'
    /** A stream was lost; a reconnect follows. */
    | 'waiting'
    /** The stream ended as planned. */
    | 'completed'
    /** The stream ended before the request for its end. */
    | 'dropped'
    /** No stream was ever opened. */
    | 'refused'
    /**
     * The client closed the stream: the run was interrupted, or the stream did not end after the request for its end.
     */
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
    /**
     * Expected by number or interval, but not received. A loss at the end is known only after the end of the stream.
     */
    readonly missed: number;
    readonly duplicated: number;
    readonly reordered: number;
    /** Received with data other than `0`. */
    readonly corrupted: number;
    /** Received more than `lateMs` after their interval. */
    readonly late: number;
    /** Id, state and all counts except `late` in one line, for a log. */
    toString(): string;
  }
}
