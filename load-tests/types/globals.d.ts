// What k6 offers without an import and @types/k6 2.3.0 does not declare.

/** Calls `callback` once, after `delay` milliseconds, on the event loop. Returns an id for `clearTimeout`. */
declare function setTimeout(callback: (...args: unknown[]) => void, delay?: number, ...args: unknown[]): number;

/** Takes back a `setTimeout`; an id that is over or unknown is ignored. */
declare function clearTimeout(id: number | undefined): void;

/** Writes a line to k6's log. Not for each event: thousands of streams would drown it. */
declare const console: Record<'debug' | 'error' | 'info' | 'log' | 'warn', (...args: unknown[]) => void>;
