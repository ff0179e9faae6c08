/** The section `secrets` of `gateway.yaml`: where references such as `${exec:NAME}` are read. */
import { type Infer, s } from '../../core/schema.ts'
import { called, text, url } from './terms.ts'

const command = called('a command and its arguments, such as ["pass", "show", "acme"]', s.array(text, { minItems: 1 }))

const vaultEntry = s.object({
  address: s.optional(url),
  token: s.optional(text),
  role_id: s.optional(text),
  secret_id: s.optional(text),
  auth_path: s.default(text, 'approle'),
  namespace: s.optional(text),
  kv_version: s.optional(s.integer({ minimum: 1, maximum: 2 })),
})
/** Settings of Vault. */
export type VaultSettings = Infer<typeof vaultEntry>

const awsEntry = s.object({
  region: s.optional(text),
  profile: s.optional(text),
  endpoint: s.optional(url),
})
/** Settings of AWS Secrets Manager. */
export type AwsSecretSettings = Infer<typeof awsEntry>

const gcpEntry = s.object({ endpoint: s.optional(url) })
/** Settings of Google Secret Manager. */
export type GcpSecretSettings = Infer<typeof gcpEntry>

/** Commands by the name that references use, and secret managers. */
export const secretsEntry = s.object({
  exec: s.default(s.record(command), {}),
  vault: s.default(vaultEntry, {}),
  aws: s.default(awsEntry, {}),
  gcp: s.default(gcpEntry, {}),
})
/** A valid section, with defaults. */
export type SecretSettings = Infer<typeof secretsEntry>
