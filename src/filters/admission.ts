/** Refuses work that the process has no room for, before a byte of body is read. */
import { errors } from '../core/error.ts'
import type { FilterFactory } from '../core/filter.ts'
import { type Infer, s } from '../core/schema.ts'

const options = s.object({
  /** Requests at the same time. */
  in_flight: s.default(s.integer({ minimum: 1 }), 1000),
  /** Event-loop delay above which new requests are refused. */
  lag: s.default(s.duration(), '500ms'),
})

export const admission: FilterFactory<Infer<typeof options>> = {
  name: 'admission',
  options,
  create({ in_flight, lag }, { load, metrics }) {
    let running = 0
    return {
      handle(_ex, next) {
        running++
        metrics.inFlight(1)
        if (running > in_flight || load.lagMs() > lag) throw errors.overloaded()
        return next()
      },
      finish(_ex, entered) {
        if (!entered) return
        running--
        metrics.inFlight(-1)
      },
    }
  },
}
