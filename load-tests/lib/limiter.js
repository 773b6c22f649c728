// @ts-check

/**
 * Lets at most `most` asynchronous tasks run at a time; the others wait their turn. One
 * virtual user that holds thousands of connections would otherwise dial as many at once.
 *
 * @param {number} most
 * @returns {<T>(task: () => Promise<T>) => Promise<T>}
 */
export function limiter(most) {
  let running = 0;
  /** @type {Array<() => void>} */
  const waiting = [];
  return async (task) => {
    if (running >= most) {
      await new Promise((resolve) => waiting.push(() => resolve(undefined)));
    } else {
      running++;
    }
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next) {
        next(); // hands its place on
      } else {
        running--;
      }
    }
  };
}
