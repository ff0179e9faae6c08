/** For how many connections a process has descriptors. */
import { readFileSync } from 'node:fs'

/** File descriptors besides connections: files, libraries, listeners. */
const RESERVED_FILES = 64
/** To providers: of requests that are admitted at the same time, and idle ones. */
const UPSTREAM_SOCKETS = 2000

/**
 * Connections that fit, when each request needs one more descriptor for its provider. A worker that has none left cannot
 * be handed a connection, and Node's primary never offers it one again.
 */
export function connectionsWithin(files: number): number {
  const free = files - RESERVED_FILES
  return Math.max(1, Math.floor(free / 2), free - UPSTREAM_SOCKETS)
}

/** Limit of open files of this process; Node raises the soft limit to the hard one. Known on Linux only. */
export function openFiles(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
