/**
 * Returns options of an `LRUCache` that holds up to `count` entries. With its own `max`, the cache would make room for
 * all of them at once: 1 MiB and 4 ms for 50,000.
 */
export const upTo = (count: number): { maxSize: number; sizeCalculation: () => 1 } => ({
  maxSize: count,
  sizeCalculation: () => 1,
})
