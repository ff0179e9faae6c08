/** Chooses the targets of a request and tries them in turn, again with the model of a limit that is reached. */
import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import type { Op, Ops } from '../../core/ops.ts'
import { asError, type GatewayError } from '../../lib/error.ts'
import { type Settings, settings } from '../../routing/settings.ts'
import { modelInstead } from '../billing/at-limit.ts'
import { passedOf } from '../ratelimit/passed.ts'
import { Failover } from './failover.ts'

/** Runs the filters below it once per attempt. Rejects with the error of the last attempt, or one for all of them. */
export const route: FilterFactory<Settings> = {
  name: 'route',
  options: settings,
  needs: ['principal'],
  gives: ['target'],
  repeats: true,
  create(options, services) {
    const failover = new Failover(options, services)
    return {
      async handle(ex, next) {
        await ex.readRequest()
        const request = ex.request!
        ex.requested.written = request
        let refusal: GatewayError | undefined
        for (;;) {
          try {
            return await failover.serve(ex, next, refusal && ex.requested.model)
          } catch (thrown) {
            const error = asError(thrown)
            const use = modelInstead(ex) ?? passedOf(ex)?.modelInstead()
            if (use !== undefined) {
              refusal = error
              moved.add(ex)
              ex.request = insteadOf(request, use)
            } else if (refusal && isUnfit(error)) {
              ex.request = request
              if (refusal.status === 429) passedOf(ex)!.refused()
              throw refusal
            } else throw error
          }
        }
      },
      finish: ex => failover.finish(ex),
    }
  },
}

const moved = new WeakSet<Exchange>()
/** Whether a limit has sent the request to another model. */
export const isMoved = (ex: Exchange): boolean => moved.has(ex)

/** Returns the request for another model, in the place of all that it names. */
function insteadOf(request: Ops[Op], model: string): Ops[Op] {
  const changed: Ops[Op] = Object.assign({}, request, { model })
  if ('models' in changed) delete changed.models
  return changed
}

/** The model of a limit is gone, or not for the caller, the endpoint or what is asked for: then the limit refuses. */
const isUnfit = ({ status, upstreamStatus }: GatewayError): boolean =>
  upstreamStatus === undefined && (status === 400 || status === 403 || status === 404)
