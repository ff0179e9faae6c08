/** Which mappings can serve a request, by the requirements of its operation. */

import type { Operation, Requirement } from '../core/operation.ts'
import type { Op, Ops } from '../core/ops.ts'
import type { Mapping } from '../core/translator.ts'
import { estimateTokens } from '../core/usage.ts'
import { errors, type GatewayError } from '../lib/error.ts'

interface Circumstances {
  promptTokens?(): number
  /** Whether a mapping can be used at all; a soft row excludes others only in favour of such a mapping. */
  reachable?(mapping: Mapping): boolean
}

/** The mappings that can serve the request, or the 400 that says which need no mapping meets. */
export function capable(
  mappings: readonly Mapping[],
  { requirements: rows, promptSize }: Operation,
  request: Ops[Op],
  { promptTokens = () => estimateTokens(promptSize(request)), reachable = () => true }: Circumstances = {},
): { mappings: readonly Mapping[]; error?: GatewayError } {
  let left = mappings
  for (let place = 0; place < rows.length; place++) {
    const row = rows[place]!
    if ((row.soft && left.length < 2) || !row.needed(request)) continue
    const able = left.filter(mapping => row.met(mapping, request, promptTokens))
    if (row.soft ? able.some(reachable) : able.length > 0) left = able
    else if (!row.soft && mappings.length > 0)
      return { mappings: able, error: unsupported(mappings, row, rows, request, promptTokens) }
  }
  return { mappings: left }
}

/** The 400 for a missing feature. If providers support it, but not with the others, it names the combination. */
function unsupported(
  mappings: readonly Mapping[],
  row: Requirement<Ops[Op]>,
  rows: readonly Requirement<Ops[Op]>[],
  request: Ops[Op],
  promptTokens: () => number,
): GatewayError {
  const others = mappings.some(mapping => row.met(mapping, request, promptTokens))
    ? rows.slice(0, rows.indexOf(row)).filter(other => !other.soft && other.needed(request))
    : []
  const all = others.length > 0 ? `${[...others, row].map(({ what }) => what).join(' and ')} at once` : row.what
  const message = `No provider of "${request.model}" supports ${all}.${others.length > 0 ? '' : alternative(row, mappings)}`
  const error = errors.unsupported(message, row.param, row.code)
  return row.status === undefined ? error : error.with({ status: row.status })
}

/** ` It takes …`, or the advice, where that is known. */
function alternative({ offers, advice }: Requirement<never>, mappings: readonly Mapping[]): string {
  const all = mappings.map(mapping => offers?.(mapping))
  const most = Math.max(...all.map(offer => (typeof offer === 'number' ? offer : 0)))
  const names = new Set(all.flatMap(offer => (typeof offer === 'object' ? offer : [])))
  if (most > 0) return ` It takes at most ${most}.`
  if (names.size > 0) return ` It takes ${[...names].join(', ')}.`
  return advice === undefined ? '' : ` ${advice}`
}
