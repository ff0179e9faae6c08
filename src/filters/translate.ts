/** Encodes the canonical request to the target's wire. Only prepares: the terminal sends and decodes. */
import { errors, GatewayError } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import type { Op, Ops } from '../core/ops.ts'
import { s } from '../core/schema.ts'
import { nativeFormOf, type Target, type WireRequest } from '../core/translator.ts'
import { Images } from './images.ts'
import { bend } from './quirks.ts'

export const translate: FilterFactory<object> = {
  name: 'translate',
  options: s.object({}),
  needs: ['target'],
  gives: ['outbound'],
  create(_options, services) {
    const images = new Images(services)
    return {
      handle(ex, next) {
        const target = ex.target!
        refuseForeign(ex, target)
        const input = accepted(ex, target)
        const inlined = target.translator.inlineMedia || target.provider.inlineMedia
        ex.encodeAgain = undefined
        const plain = inlined && 'messages' in input ? images.inlined(ex, input) : input
        if (plain instanceof Promise) {
          return plain.then(inlined => {
            encode(ex, inlined, target)
            return next()
          })
        }
        encode(ex, plain, target)
        return next()
      },
      finish(ex) {
        images.release(ex)
      },
    }
  },
}

/** A field that means something is never dropped in silence: another target may speak the client's wire. */
function refuseForeign({ native }: Exchange, { translator, mapping, provider }: Target): void {
  if (native?.only === undefined || nativeFormOf(translator, native)) return
  const only = `"${native.only}" can only be sent to providers that speak ${native.wire}`
  const chosen = `"${mapping.model.id}" at ${provider.id} is called by ${translator.wire}`
  throw errors
    .unsupported(`${only}, and ${chosen}: leave it out, or choose another model.`, native.only)
    .with({ failover: true })
}

/** Whoever finds a lower limit on the answer below has it encoded again. */
function encode(ex: Exchange, all: Ops[Op], target: Target): void {
  ex.encodeAgain = () => encode(ex, all, target)
  const { outputLimit } = ex
  const input = outputLimit ? ex.operation.bounded!(all, outputLimit.tokens) : all
  const stream = ex.streaming && target.mapping.supports.has('streaming')
  const { translator } = target
  const given = ex.native
  const native = given && nativeFormOf(translator, given)
  let request: WireRequest
  try {
    request = native
      ? native.encode(given.body, input, target, stream, given.headers)
      : translator.encode(ex.showsReasoning ? input : { include_reasoning: false, ...input }, target, stream)
  } catch (thrown) {
    // What this wire cannot carry another one may.
    throw thrown instanceof GatewayError && thrown.status === 400 ? thrown.with({ failover: true }) : thrown
  }
  bend(target.provider, request.body)
  ex.outbound = request
}

/** The request without what only tunes an answer and is not among the parameters that the mapping lists, if it does. */
function accepted(ex: Exchange, { mapping: { parameters } }: Target): Ops[Op] {
  const request = ex.request!
  if (!parameters) return request
  const { tuning }: { tuning: Readonly<Record<string, string>> } = ex.operation
  let rest: Record<string, unknown> = request
  for (const field in tuning) {
    if (rest[field] == null || parameters.has(tuning[field]!)) continue
    if (rest === request) rest = { ...request }
    delete rest[field]
  }
  return rest as Ops[Op]
}
