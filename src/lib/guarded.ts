/** Keeps what a listener throws from going through its emitter: it would end the process. */

/** Returns `listener` with what it throws passed to `failed`, which must not throw, with the arguments behind it. */
export const guarded =
  <A extends unknown[]>(
    listener: (...args: A) => void,
    failed: (thrown: unknown, ...args: A) => void,
  ): ((...args: A) => void) =>
  (...args) => {
    try {
      listener(...args)
    } catch (thrown) {
      failed(thrown, ...args)
    }
  }
