/** The section `secrets` of `gateway.yaml`: where references such as `${exec:NAME}` are read. */
import { type Infer, s } from '../../core/schema.ts'
import { called, text } from './terms.ts'

const command = called('a command and its arguments, such as ["pass", "show", "acme"]', s.array(text, { minItems: 1 }))

/** Commands by the name that references use. */
export const secretsEntry = s.object({
  exec: s.default(s.record(command), {}),
})
/** A valid section, with defaults. */
export type SecretSettings = Infer<typeof secretsEntry>
