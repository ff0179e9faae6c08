/** Options of endpoints for tests that send more than the limits of rates allow. */

const rates = { ratelimit: { rpm: 1_000_000 } }

/** `endpoints:` of a configuration in which these endpoints have no limit that a test reaches. */
export const unlimited = (...names: readonly string[]): Record<string, typeof rates> =>
  Object.fromEntries(names.map(name => [name, rates]))
