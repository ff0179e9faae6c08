/** `egress` of `gateway.yaml` and of manifests. */
import { type Infer, s } from '../../core/schema.ts'
import { called, list, text } from './terms.ts'

const exempt = 'a list such as [".internal", "10.0.0.0/8"], or the text of NO_PROXY'
const fields = {
  proxy: s.optional(s.string()),
  no_proxy: s.optional(s.either(called(exempt, s.string()), called(exempt, list(s.string())))),
  ca: s.optional(text),
}
const clientFields = {
  client_cert: s.optional(text),
  client_key: s.optional(text),
}

/** The entry of `gateway.yaml`, for all connections. */
export const egressEntry = s.optional(s.object(fields))
/** The entry of a manifest, for connections to its provider. */
export const providerEgressEntry = s.optional(s.object({ ...fields, ...clientFields }))
/** A valid entry of either file. */
export type EgressEntry = NonNullable<Infer<typeof providerEgressEntry>>

/** Keys whose values name files. */
export const egressFiles = ['ca', 'client_cert', 'client_key'] as const
export type EgressFileKey = (typeof egressFiles)[number]
