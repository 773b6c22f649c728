// Globals of k6 that @types/k6 2.3.0 does not declare.

/** Calls `callback` once, after `delay` milliseconds, on the event loop. Returns an id for `clearTimeout`. */
declare function setTimeout(callback: (...args: unknown[]) => void, delay?: number, ...args: unknown[]): number;

/** Cancels a `setTimeout`; expired and unknown ids are ignored. */
declare function clearTimeout(id: number | undefined): void;

/** Writes a line to k6's log. Do not call it per event: thousands of streams would flood the log. */
declare const console: Record<'debug' | 'error' | 'info' | 'log' | 'warn', (...args: unknown[]) => void>;
