/** Keys of the callers whose tokens an identity provider signs. */
import { createHash } from 'node:crypto'
import type { IssuerKeyStore } from '../../core/ports.ts'
import type { SqlAccounts } from './accounts.ts'
import type { AuditedTransaction } from './audit.ts'
import { first } from './sql.ts'

const FOUND = 'SELECT id FROM keys WHERE hash = $1'

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

  async #isThere(hash: string): Promise<boolean> {
    const { sql } = this.#changes
    return (await this.#changes.read(() => first(sql, FOUND, [hash]))) !== undefined
  }
}
