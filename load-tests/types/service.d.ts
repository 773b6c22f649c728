/**
 * The description of an SSE service: the default export of a module in `load-tests/services/`. `docs/services.md`
 * says how to write one; `internal/service` checks and compiles it.
 *
 * All but the two functions is data, and may be computed when the module is loaded. Times are seconds.
 *
 * **Placeholders** are filled per request, and escaped for where they stand:
 *
 * | in | known |
 * |---|---|
 * | `connect`, `end` | `{base}` `{topic}` `{n}` `{id}` `{run}` `{token}` |
 * | `connect` with `end.by: 'event'` | these, `{prompt}`, and `{client}` with `connect.client`; `{id}` is unique for each request |
 * | `connect.then` | those of `connect` and `end`, and `{client}` |
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
  /** Short, for reports: letters, digits, dots, hyphens, underscores. */
  name: string;
  /**
   * Fills `{token}` of `connect` and `end`; called for every attempt to connect. A header with an empty one is left out.
   * `ttl` is TOKEN_TTL, for how many seconds the token is to be good; undefined where the run does not say.
   * A token that does not change is given by the name of its variable.
   */
  token?: ((ttl?: number) => string) | 'SUBSCRIBE_TOKEN' | 'BACKEND_TOKEN';
  /** The URL of stream `n`, in place of `connect.url`; called for every attempt to connect. */
  url?: (n: number) => string;
  /**
   * The body of request `n` of responses that end by themselves, in place of `connect.body`; called for every request. It is
   * request `i` of its client, from 0, and `client` is the value of `connect.client`, `''` at first. `prompt` is what
   * `{prompt}` has in `connect.body`.
   */
  body?: (n: number, i: number, client: string, prompt: string) => string;
  /** How a stream is opened. It must answer 200 and `text/event-stream`. */
  connect: Connect;
  /** What keeps a stream alive, and is never a message. */
  heartbeat?: Block & {
    /** So many seconds apart at most. Left out: a silence is judged by the interval of messages, or by NOOP_INTERVAL. */
    every?: number;
  };
  /**
   * What a message is, and how messages are checked: by number (`seq`), by interval (`every`), by the run's publisher
   * (`publish`, which needs `seq`), or by the other clients (`same`). `'unchecked'`: messages are not checked, and a run checks
   * connections only.
   */
  message: (Message & ({ seq: Source } | { every: number } | { same: Same } | { per: 'request' })) | 'unchecked';
  /** Who ends a stream. Left out: the client. */
  end?: { by: 'client' } | ({ by: 'request' } & Request) | {
    by: 'server';
    /** A stream lives so long, or from the shortest to the longest. */
    lifetime: number | [shortest: number, longest: number];
  } | FiniteEnd;
  /** How a stream goes on after it was cut. Left out: by `Last-Event-ID`. */
  resume?: {
    by: 'header' | 'none' | {
      /** The parameter of the URL that takes the last id. */
      query: string;
    };
    /** Where the id is that is sent. Left out: the `id:` field. */
    id?: Source;
    /** How the service says that it could not resume without a loss. */
    gap?: Block | {
      /** Name and value of a header of the response; `{other}` is any other id than the one that was asked for. */
      header: string;
    };
  };
  /** How a message is published. It needs `message.seq`, and a `{seq}` somewhere. */
  publish?: Request;
}

/**
 * Where a value is: the `id:` field, the data or the comments of a block, or what one group of a regular expression
 * (Go's) finds in it, or a path into data that is JSON: `$.name`, `[0]` and `['name']`, one after the other.
 *
 * @example 'id'
 * @example 'id:^[0-9]+:([0-9]+)$'
 * @example 'json:$.items[0].seq'
 * @example 'data:seq=([0-9]+)'
 */
export type Source = 'id' | `id:${string}` | `json:$${string}` | 'data' | `data:${string}` | 'comment' | `comment:${string}`;

/** What clients are compared by: a part of the data, or the id. The name of the event is compared, too. */
export type Same = 'data' | `data:${string}` | `json:$${string}` | 'id' | `id:${string}`;

/** Blocks that have all that is named. */
export interface Block {
  /** The name of the event; `'message'` for one without. */
  event?: string;
  /** The data, exactly. */
  data?: string;
  /** The comment, exactly; `true`: a block of nothing but comments. */
  comment?: string | true;
}

/** A block, or a value in its JSON: `{ json: '$.error' }` for any but null and false, `{ json: '$.type', is: 'RUN_ERROR' }`. */
export type Condition = Block & { json?: `$${string}`; is?: string | number | boolean };

/** A response that ends by itself: an answer of a language model, an agent run, a tool call. `soak run finite` soaks these. */
export interface FiniteEnd {
  by: 'event';
  /** The terminal events. A complete response has exactly one, and after it nothing but heartbeats. */
  done: Condition | Condition[];
  /** Errors inside of a response with the status 200. */
  failed?: Condition | Condition[];
  /** The answer was cut short on purpose, as by a limit of its length. */
  incomplete?: Condition | Condition[];
  /** What the service states of its own answer: the whole text of the events `of`, or their number, since the last statement. */
  stated?: {
    /** The event that states it. Left out: any. */
    event?: string;
    /** The events that it is about. Left out: all with content. */
    of?: string;
    text?: Source;
    chunks?: Source;
    /** The number of tokens, of which each chunk of the answer has at least one: more chunks count as duplicated. */
    tokens?: Source;
  };
}

export interface Request {
  /** `GET` for `connect`, `DELETE` for `end`, otherwise `POST`. */
  method?: string;
  /** Begins with `{base}`. What a URL cannot have is encoded, so JSON may stand in a parameter as it is. */
  url: string;
  headers?: Record<string, string>;
  /**
   * JSON (by its Content-Type, or its first letter; then the Content-Type is added), a form (by its Content-Type), or
   * any text.
   */
  body?: string;
  /** The statuses that confirm it. Left out: 200, 201, 202 and 204. */
  ok?: number[];
}

export interface Connect extends Omit<Request, 'url' | 'ok'> {
  url?: string;
  /** Maximum event size in bytes: a stream ends at a longer line, or at an event with more data. Default: 1048576 (1 MiB). */
  maxEventSize?: number;
  /**
   * With `end.by: 'event'`: a value of a response, which the next request of its client has as `{client}`: a header, or the first
   * value of this place in its events. A client begins again after a response that is not complete. A header with an empty one is left out.
   */
  client?: Source | `header:${string}`;
  /** A second request, sent when the first event of this name comes. Each connection sends it anew. */
  then?: Request & {
    event: string;
    /** Where `{client}` is in that event. */
    client?: Source;
  };
}

export interface Message {
  /**
   * The part of a message that is the same for all clients of its topic, which are compared with each other. Not with `seq` or
   * `every`, which are stronger evidence.
   */
  same?: Same;
  /** The number of a message: whole, one more for each. */
  seq?: Source;
  /** The run's marker. Messages with another one are of others, and counted apart. */
  run?: Source;
  /** When it was sent: seconds, ms, µs or ns since 1970, told apart by their size, or a date of RFC 3339. */
  sentAt?: Source;
  /** The checksum of marker, number and time, as `{sum}` of `publish` has it: with another one a message is corrupted. */
  sum?: Source;
  /** Names of events that are messages. Left out: any. */
  event?: string | string[];
  /** The data of each message, exactly; one with other data is corrupted. */
  data?: string;
  /**
   * Of a response that ends by itself (`end.by: 'event'`): where its content is, text, reasoning or a tool call. Of several places
   * each may have some. An empty text or list is no content. Left out: each event with data that does not end the response.
   */
  content?: Source | Source[];
  /**
   * Whose numbers they are: of each stream, of the topic, or of each response with `end.by: 'event'`, where they begin at 0 or 1.
   * Left out: of the topic with `publish`.
   */
  per?: 'stream' | 'topic' | 'request';
  /** `any`: the service does not promise the order. */
  order?: 'published' | 'any';
  /** `at-least-once`: the service may bring a message again. */
  delivery?: 'exactly-once' | 'at-least-once';
  /** One is due every so many seconds. */
  every?: number;
  /** What reports and metrics call a message. Left out: `message`. */
  noun?: 'message' | 'noop';
}
