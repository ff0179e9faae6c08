/** Keys of organizations for providers. Secrets come in and never go out. */
import { s } from '../../core/schema.ts'
import { organization } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import { id, provider } from './policy-args.ts'

const label = s.string({ minLength: 1, maxLength: 100, description: 'a label of 1 to 100 characters' })
const secret = s.string({ minLength: 1, maxLength: 64 * 1024, description: 'the secret that the provider gave' })

export const providerKeyCommands: CommandTable = {
  /** → the record, without the secret. */
  'provider-keys.add': command(
    s.object({ organization, provider, label: s.optional(label), secret }),
    ({ organization, provider, label = 'default', secret }, { policies }, actor) =>
      policies.providerKeys.add({ organization, provider, label, secret }, actor),
  ),
  'provider-keys.list': command(
    s.object({ organization: s.optional(organization) }),
    ({ organization }, { policies }) => policies.providerKeys.list(organization),
  ),
  'provider-keys.remove': command(
    s.object({ id, organization: s.optional(organization) }),
    ({ id, organization }, { policies }, actor) => policies.providerKeys.remove(id, organization, actor),
  ),
  /** → `{reencrypted, unreadable, keyVersion}`. May be asked for again when it was cut short. */
  'provider-keys.reencrypt': command(
    s.object({ newKey: s.optional(s.boolean()) }),
    ({ newKey = false }, { policies }, actor) => policies.providerKeys.reencrypt(newKey, actor),
  ),
}
