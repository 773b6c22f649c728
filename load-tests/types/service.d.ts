/**
 * The description of an SSE service: the default export of a module in `load-tests/services/`. `docs/services.md`
 * explains how to write a description; `internal/service` checks and compiles it.
 *
 * All properties except the three functions are data. The module may compute them when it is loaded. Times are in
 * seconds.
 *
 * **Placeholders** are replaced in each request, and their values are escaped for their position:
 *
 * | property | placeholders |
 * |---|---|
 * | `connect`, `end` | `{base}` `{topic}` `{n}` `{id}` `{run}` `{token}` |
 * | `connect` with `end.by: 'event'` | also `{prompt}`, and `{client}` with `connect.client`; `{id}` is unique for each request |
 * | `connect.then` | the placeholders of `connect` and `end`, and `{client}` |
 * | `publish` | `{base}` `{topic}` `{run}` `{seq}` `{sentAt}` `{sum}` `{padding}` `{token}` |
 *
 * @example
 * /** @type {import('../types/service').ServiceDescription} *\/
 * export default {
 *   name: 'mine',
 *   connect: { url: '{base}/events?room={topic}' },
 *   heartbeat: { comment: true, every: 15 },
 *   message: { seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
 *   publish: { url: '{base}/rooms/{topic}', body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}' },
 * };
 */
export interface ServiceDescription {
  /** A short name for reports: letters, digits, dots, hyphens, underscores. */
  name: string;
  /**
   * Returns the value of `{token}` in `connect` and `end`; called for every attempt to connect. Headers with an empty
   * token are omitted. `ttl` is TOKEN_TTL, the lifetime of the token in seconds; undefined if the run does not set it.
   * For a token that does not change, write the name of its variable.
   */
  token?: ((ttl?: number) => string) | 'SUBSCRIBE_TOKEN' | 'BACKEND_TOKEN';
  /** Returns the URL of stream `n`, in place of `connect.url`; called for every attempt to connect. */
  url?: (n: number) => string;
  /**
   * Returns the body of request `n`, in place of `connect.body`, if responses end by themselves; called for every
   * request. `i` is the number of the request within its client, from 0. `client` is the value of `connect.client`,
   * `''` at first. `prompt` is the value of `{prompt}` in `connect.body`.
   */
  body?: (n: number, i: number, client: string, prompt: string) => string;
  /** The request that opens a stream. The response must have status 200 and the type `text/event-stream`. */
  connect: Connect;
  /** The blocks that keep a stream alive. They are never messages. */
  heartbeat?: Block & {
    /**
     * Maximum silence of a stream in seconds. If omitted, the interval of messages, or NOOP_INTERVAL, determines the
     * idle timeout.
     */
    every?: number;
  };
  /**
   * The events that are messages, and how a run checks them: by number (`seq`), by interval (`every`), by the run's
   * publisher (`publish`, which needs `seq`), or by the other clients (`same`). `'unchecked'`: the run checks only
   * connections.
   */
  message: (Message & ({ seq: Source } | { every: number } | { same: Same } | { per: 'request' })) | 'unchecked';
  /** The party that ends a stream. Default: the client. */
  end?: { by: 'client' } | ({ by: 'request' } & Request) | {
    by: 'server';
    /** Lifetime of a stream, or its minimum and maximum. */
    lifetime: number | [shortest: number, longest: number];
  } | FiniteEnd;
  /** How a client resumes after a disconnect. Default: with `Last-Event-ID`. */
  resume?: {
    by: 'header' | 'none' | {
      /** The parameter of the URL that contains the last id. */
      query: string;
    };
    /** The place of the id in a message. Default: the `id:` field. */
    id?: Source;
    /** How the service reports that it could not resume without a loss. */
    gap?: Block | {
      /** Name and value of a header of the response; `{other}` matches every id except the requested one. */
      header: string;
    };
  };
  /** The request that publishes a message. It requires `message.seq`, and `{seq}` in the URL, a header or the body. */
  publish?: Request;
}

/**
 * The place of a value in a block. It is the `id:` field, the data or the comments, or the match of the only group of a
 * regular expression (Go syntax) in one of them. It can also be a path into JSON data: `$.name`, `[0]` and `['name']`
 * in sequence.
 *
 * @example 'id'
 * @example 'id:^[0-9]+:([0-9]+)$'
 * @example 'json:$.items[0].seq'
 * @example 'data:seq=([0-9]+)'
 */
export type Source = 'id' | `id:${string}` | `json:$${string}` | 'data' | `data:${string}` | 'comment' | `comment:${string}`;

/** The value by which clients are compared: a part of the data, or the id. The name of the event is compared, too. */
export type Same = 'data' | `data:${string}` | `json:$${string}` | 'id' | `id:${string}`;

/** Blocks that have all of these values. */
export interface Block {
  /** The name of the event; `'message'` for an event without a name. */
  event?: string;
  /** The exact data. */
  data?: string;
  /** The exact comment; `true`: a block that contains only comments. */
  comment?: string | true;
}

/**
 * An event, or a value in its JSON: `{ json: '$.type', is: 'RUN_ERROR' }`, or `{ json: '$.error' }` for any value
 * except null and false.
 */
export type Condition = Omit<Block, 'comment'> & { json?: `$${string}`; is?: string | number | boolean };

/**
 * A response that ends by itself: an answer of a language model, an agent run, a tool call. `soak run finite` tests
 * these.
 */
export interface FiniteEnd {
  by: 'event';
  /** The terminal events. A complete response has exactly one, and only heartbeats after it. */
  done: Condition | Condition[];
  /** Errors inside a response with status 200. */
  failed?: Condition | Condition[];
  /** Events of an answer that was shortened on purpose, for example by a limit of its length. */
  incomplete?: Condition | Condition[];
  /**
   * A statement of the service about its own answer: the whole text of the events `of`, or their number, since the last
   * statement.
   */
  stated?: {
    /** The event that contains the statement. Default: any event. */
    event?: string;
    /** The events that the statement covers. Default: all events with content. */
    of?: string;
    text?: Source;
    chunks?: Source;
    /**
     * The number of tokens. Each chunk of the answer has at least one token, so additional chunks count as duplicated.
     */
    tokens?: Source;
  };
}

export interface Request {
  /** `GET` for `connect`, `DELETE` for `end`, otherwise `POST`. */
  method?: string;
  /** Starts with `{base}`. Characters that a URL cannot contain are encoded, so a parameter may contain plain JSON. */
  url: string;
  headers?: Record<string, string>;
  /**
   * JSON (recognized by its Content-Type, or by its first character, and then the Content-Type is added), a form
   * (recognized by its Content-Type), or any text.
   */
  body?: string;
  /** The statuses of a successful response. Default: 200, 201, 202 and 204. */
  ok?: number[];
}

export interface Connect extends Omit<Request, 'url' | 'ok'> {
  url?: string;
  /**
   * Maximum event size in bytes. The client closes a stream with a longer line or an event with more data. Default:
   * 1048576 (1 MiB).
   */
  maxEventSize?: number;
  /**
   * With `end.by: 'event'`: a value of a response that the next request of the same client contains as `{client}`. It
   * is a header, or the first value at this place in the events. After an incomplete response the client starts again.
   * Headers that contain an empty `{client}` are omitted.
   */
  client?: Source | `header:${string}`;
  /** A second request, sent when the first event of this name arrives. Each stream sends its own. */
  then?: Request & {
    event: string;
    /** The place of `{client}` in that event. */
    client?: Source;
  };
}

export interface Message {
  /**
   * The part of a message that is the same for all clients of its topic. The run compares these clients with each
   * other. `same` cannot be combined with `seq` or `every`, which are stronger evidence.
   */
  same?: Same;
  /** The number of a message: an integer that increases by one with each message. */
  seq?: Source;
  /** The marker of the run. Messages with another marker belong to other publishers and are counted separately. */
  run?: Source;
  /** The time of sending: seconds, ms, µs or ns since 1970, distinguished by their size, or a date of RFC 3339. */
  sentAt?: Source;
  /**
   * The checksum of marker, number and time, as in `{sum}` of `publish`. A message with another checksum is corrupted.
   */
  sum?: Source;
  /** Names of events that are messages. Default: all names. */
  event?: string | string[];
  /** The exact data of each message. A message with other data is corrupted. */
  data?: string;
  /**
   * With `end.by: 'event'`: the places of the content of a response (text, reasoning or a tool call). An empty text or
   * list is not content. Default: each event with data that does not end the response.
   */
  content?: Source | Source[];
  /**
   * The scope of the numbers: each stream, the topic, or each response with `end.by: 'event'`, where numbers start at 0
   * or 1. Default: the topic with `publish`.
   */
  per?: 'stream' | 'topic' | 'request';
  /** `any`: the service does not guarantee the order. */
  order?: 'published' | 'any';
  /** `at-least-once`: the service may send a message again. */
  delivery?: 'exactly-once' | 'at-least-once';
  /** Seconds between two messages. */
  every?: number;
  /** The name of a message in reports and metrics. Default: `message`. */
  noun?: 'message' | 'noop';
}
