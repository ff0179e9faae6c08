/** Keys of the callers whose tokens an identity provider signs. */
import type { IssuerKeyStore } from '../../core/ports.ts'
import { sha256 } from '../../lib/opaque.ts'
import { ADD_ORGANIZATION, ADD_PROJECT, GATEWAY, type SqlAccounts } from './accounts.ts'
import type { AuditedTransaction, Change } from './audit.ts'
import { first } from './sql.ts'

const FOUND = 'SELECT id FROM keys WHERE hash = $1'

const ORGANIZATION = 'SELECT id FROM organizations WHERE id = $1'
/** Id and name of the organization that pays for the operator's own requests, and of its project. */
const OPERATOR = 'gateway-operator'

/** No secret has the hash of such a key: it is not the SHA-256 of anything that a caller could send. */
const hashOf = (issuer: string, project: string): string => `jwt:${sha256(`${issuer}\n${project}`)}`

/** Makes the `IssuerKeyStore`; `accounts` makes its keys. */
export function sqlIssuerKeys(changes: AuditedTransaction, accounts: SqlAccounts): IssuerKeyStore {
  const isThere = async (text: string, value: string): Promise<boolean> =>
    (await changes.read(() => first(changes.sql, text, [value]))) !== undefined
  /** Another caller or node may have made it meanwhile. */
  const unlessThere = async (text: string, value: string, make: () => Promise<unknown>): Promise<void> => {
    try {
      await make()
    } catch (thrown) {
      if (!(await isThere(text, value))) throw thrown
    }
  }
  const keyFor = async (hash: string, project: string, name: string): Promise<string> => {
    await unlessThere(FOUND, hash, () => accounts.createKey({ project, name, hash }))
    return hash
  }

  return {
    async keyOf(issuer, { org, project: wanted }) {
      const { names } = changes
      const id = await changes.read(async () => {
        if (org === undefined) return (await names.project(wanted)).id
        return (await names.projectOf((await names.organization(org)).id, wanted)).id
      })
      const hash = hashOf(issuer, id)
      return (await isThere(FOUND, hash)) ? hash : keyFor(hash, id, `tokens of ${issuer}`)
    },

    async keyOfOperator() {
      const hash = hashOf('operator', OPERATOR)
      if (await isThere(FOUND, hash)) return hash
      await unlessThere(ORGANIZATION, OPERATOR, () => changes.run(addOperator))
      return keyFor(hash, OPERATOR, 'mirrors')
    },
  }
}

async function addOperator({ sql, now, note }: Change): Promise<void> {
  const [organization, project] = [OPERATOR, 'mirrors']
  await sql.query(ADD_ORGANIZATION, [organization, organization, now()])
  await sql.query(ADD_PROJECT, [organization, organization, project, now()])
  const became = { name: organization, account: 'open', project }
  await note({ actor: GATEWAY, action: 'orgs.create', organization, subject: organization, was: null, became })
}
