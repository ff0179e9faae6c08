/** Carries what a virtual model sets into a client's own body, for a provider of the same wire. */
import { isDeepStrictEqual } from 'node:util'
import type { Op, Ops } from '../../core/ops.ts'
import type { Translator } from '../../core/translator.ts'
import type { WireRequest } from '../../core/wire.ts'
import { isObject, type Json, objectIn } from '../../json/json.ts'
import { replacedIn } from '../../routing/presets.ts'

/** Writes a request to the provider's wire. */
type Encode = (input: Ops[Op]) => WireRequest

/** Applies what the virtual model of `request` sets, if there is one, to the body in `asking`. `input`: the adapted request. */
export function carryPreset(asking: WireRequest, request: Ops[Op], input: Ops[Op], form: Form, encode: Encode): void {
  const replaced = replacedIn(request)
  if (!replaced) return
  const before: Json = Object.assign({} as Json, input, replaced.fields)
  const after: Json = Object.assign({} as Json, input)
  if (Array.isArray(before.messages)) before.messages = before.messages.slice(replaced.system.length)
  if (form.withSystem) after.messages = before.messages
  const { body, output } = encode(after as Ops[Op])
  const changed = changedBody(asking.body, encode(before as Ops[Op]).body, body)
  const { system } = replaced
  asking.body = form.withSystem && system.length > 0 ? form.withSystem(changed, system) : changed
  if (output) asking.output = output
}

type Form = Pick<NonNullable<Translator['native']>, 'withSystem'>

/** Makes in `own` the changes that lead from `before` to `after`: bodies of one wire. Shares what does not change. */
function changedBody(own: Readonly<Json>, before: Readonly<Json>, after: Readonly<Json>): Json {
  const changed: Json = Object.assign({}, own)
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, next, given] = [before[name], after[name], own[name]]
    if (isDeepStrictEqual(old, next)) continue
    if (next === undefined) delete changed[name]
    else if (isObject(next) && isObject(given)) changed[name] = changedBody(given, objectIn(old), next)
    else changed[name] = Array.isArray(given) ? addedTo(old, next, given) : next
  }
  return changed
}

/** A list with the items that were added before the old ones; the new value where it does not end in them. */
function addedTo(old: unknown, next: unknown, given: readonly unknown[]): unknown {
  const before = old === undefined ? [] : old
  if (!Array.isArray(next) || !Array.isArray(before)) return next
  const added = next.length - before.length
  return added >= 0 && isDeepStrictEqual(next.slice(added), before) ? [...next.slice(0, added), ...given] : next
}
