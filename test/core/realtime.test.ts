/** Realtime endpoints of a gateway whose operator has turned them off. */
import t from 'tap'
import type { RealtimeOptions } from '../../src/core/realtime.ts'
import { realtime } from '../../src/endpoints/realtime.ts'
import { exchange, thrown } from './kit.ts'

t.test('both endpoints of realtime refuse while it is turned off, and name the setting', async t => {
  t.equal(realtime.length, 2)
  for (const endpoint of realtime) {
    const ex = exchange({ endpoint, snapshot: { realtime: { enabled: false } as RealtimeOptions } })
    t.match(
      thrown(() => endpoint.check!(ex)),
      { status: 503, code: 'realtime_disabled', message: '"realtime: { enabled: true }"' },
      endpoint.path,
    )
  }
})
