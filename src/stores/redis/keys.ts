/** Names of keys in Redis. */

/** Every key and channel begins with this. */
export const PREFIX = 'gw'

/**
 * The key of a counter. Its hash tag is all but the last word, which is the organization: all counters of one stand in
 * one slot of a cluster.
 */
export const keyOf = (kind: string, counter: string): string => {
  const owner = counter.slice(0, Math.max(0, counter.lastIndexOf(' ')))
  return `${PREFIX}:{${owner}}:${kind}:${counter}`
}
