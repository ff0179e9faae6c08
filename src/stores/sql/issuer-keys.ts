/** Keys of the callers whose tokens an identity provider signs. */
import { createHash } from 'node:crypto'
import type { IssuerKeyStore } from '../../core/ports.ts'
import { GATEWAY, type SqlAccounts } from './accounts.ts'
import type { AuditedTransaction } from './audit.ts'
import { first } from './sql.ts'

const FOUND = 'SELECT id FROM keys WHERE hash = $1'

const ORGANIZATION = 'SELECT id FROM organizations WHERE id = $1'
/** Id and name of the organization that pays for the operator's own requests, and of its project. */
const OPERATOR = 'gateway-operator'

/** No secret has the hash of such a key: it is not the SHA-256 of anything that a caller could send. */
const hashOf = (issuer: string, project: string): string =>
  `jwt:${createHash('sha256').update(`${issuer}\n${project}`).digest('hex')}`

export class SqlIssuerKeys implements IssuerKeyStore {
  readonly #changes: AuditedTransaction
  readonly #accounts: SqlAccounts

  constructor(changes: AuditedTransaction, accounts: SqlAccounts) {
    this.#changes = changes
    this.#accounts = accounts
  }

  async keyOf(issuer: string, place: { readonly org: string | undefined; readonly project: string }): Promise<string> {
    const { names } = this.#changes
    const { org, project: wanted } = place
    const id = await this.#changes.read(async () => {
      if (org === undefined) return (await names.project(wanted)).id
      return (await names.projectOf((await names.organization(org)).id, wanted)).id
    })
    const hash = hashOf(issuer, id)
    if (await this.#isThere(hash)) return hash
    try {
      await this.#accounts.createKey({ project: id, name: `tokens of ${issuer}`, hash })
    } catch (thrown) {
      // Another caller may have made it meanwhile.
      if (!(await this.#isThere(hash))) throw thrown
    }
    return hash
  }

  async keyOfOperator(): Promise<string> {
    const hash = hashOf('operator', OPERATOR)
    if (await this.#isThere(hash)) return hash
    try {
      await this.#changes.run(async ({ sql, now, note }) => {
        const values = [OPERATOR, OPERATOR, now()]
        await sql.query("INSERT INTO organizations (id, name, account, created_at) VALUES ($1, $2, 'open', $3)", values)
        await sql.query('INSERT INTO projects (id, org_id, name, created_at) VALUES ($1, $2, $3, $4)', [
          ...[OPERATOR, OPERATOR, 'mirrors', now()],
        ])
        const became = { name: OPERATOR, account: 'open', project: 'mirrors' }
        await note({
          actor: GATEWAY,
          action: 'orgs.create',
          organization: OPERATOR,
          subject: OPERATOR,
          was: null,
          became,
        })
      })
    } catch (thrown) {
      // Another node may have made it meanwhile, or a start that ended before the key was there.
      const found = await this.#changes.read(() => first(this.#changes.sql, ORGANIZATION, [OPERATOR]))
      if (!found) throw thrown
    }
    try {
      await this.#accounts.createKey({ project: OPERATOR, name: 'mirrors', hash })
    } catch (thrown) {
      if (!(await this.#isThere(hash))) throw thrown
    }
    return hash
  }

  async #isThere(hash: string): Promise<boolean> {
    const { sql } = this.#changes
    return (await this.#changes.read(() => first(sql, FOUND, [hash]))) !== undefined
  }
}
