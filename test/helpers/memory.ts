/** Memory of a gateway without uncollected garbage. */
import { once } from 'node:events'
import { WebSocket } from 'undici'
import type { Gateway } from './gateway.ts'
import { metric } from './invariants.ts'

/** Environment of a gateway whose `memory` is measured. */
export const inspected = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

const MIB = 1024 * 1024

/** MiB after a garbage collection in a gateway started with `inspected`. */
export async function memory(gateway: Gateway): Promise<{ heap: number; rss: number }> {
  const url = /Debugger listening on (\S+)/.exec(gateway.stderr())![1]!
  const inspector = new WebSocket(url)
  await once(inspector, 'open')
  inspector.send(JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' }))
  await once(inspector, 'message')
  inspector.close()
  const heap = metric(await gateway.metrics(), 'nodejs_heap_size_used_bytes')!
  return { heap: heap / MIB, rss: (await gateway.rss()) / MIB }
}
