/** How to connect to addresses that others gave: clients, or providers (docs/contract.md#fetched-addresses). */
import { guardedConnector, type Resolve } from './guard.ts'
import { plainConnector } from './paused-answers.ts'
import type { SocketClientOptions } from './socket.ts'

const CONNECT_MS = 5_000
const MAX_HEADER_BYTES = 16 * 1024

/**
 * Undefined for addresses that are not tried. Public ones with https on its own port are, and `allowed` origins.
 */
export function fetchOptions(
  url: URL,
  allowed: ReadonlySet<string>,
  resolve: Resolve,
  timeoutMs: number,
): SocketClientOptions | undefined {
  if (url.username !== '' || url.password !== '') return undefined
  const isAllowed = allowed.has(url.origin)
  if (!isAllowed && (url.protocol !== 'https:' || url.port !== '')) return undefined
  return {
    connect: isAllowed ? plainConnector({ timeout: CONNECT_MS }) : guardedConnector(CONNECT_MS, resolve),
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  }
}
