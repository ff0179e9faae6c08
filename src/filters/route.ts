/** Plans the targets of a request and tries them in turn: the whole of failover. */
import { asError, type GatewayError } from '../core/error.ts'
import type { Attempt, Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import { type Infer, s } from '../core/schema.ts'
import type { Target } from '../core/translator.ts'
import { errorType, exhausted } from '../routing/outcome.ts'
import { plan } from '../routing/plan.ts'

const options = s.object({
  /** Targets that one request may try. */
  attempts: s.default(s.integer({ minimum: 1, maximum: 10 }), 3),
  /** What the model id `auto` chooses from, best first. */
  auto: s.default(s.array(s.string()), []),
})

export const route: FilterFactory<Infer<typeof options>> = {
  name: 'route',
  options,
  needs: ['principal'],
  gives: ['target'],
  repeats: true,
  create({ attempts, auto }) {
    return {
      async handle(ex, next) {
        await ex.input()
        const targets = plan(ex, { auto })
        const limit = ex.header('x-no-fallback') === 'true' ? 1 : attempts
        const failures: GatewayError[] = []
        for (const target of targets.slice(0, limit)) {
          ex.target = target
          try {
            const reply = await next()
            ex.attempts.push(new Answered(ex, target, reply.status))
            return reply
          } catch (thrown) {
            const error = asError(thrown)
            if (error.upstreamStatus !== undefined) {
              ex.attempts.push({ target, status: error.upstreamStatus, succeeded: false, errorType: errorType(error) })
            }
            failures.push(error)
            if (!error.failover || ex.signal.aborted) throw error
          }
        }
        throw exhausted(failures)
      },
    }
  },
}

/**
 * The attempt that answered: it is no success when its answer breaks after the commit point, which is told later.
 * A class, because V8 makes a new hidden class for each object literal that has accessors.
 */
class Answered implements Attempt {
  readonly target: Target
  readonly status: number
  readonly #ex: Exchange

  constructor(ex: Exchange, target: Target, status: number) {
    this.#ex = ex
    this.target = target
    this.status = status
  }

  get succeeded(): boolean {
    return this.errorType === 'none'
  }

  get errorType(): Attempt['errorType'] {
    const { failure } = this.#ex
    return failure?.upstreamStatus === undefined ? 'none' : errorType(failure)
  }
}
