/** The bounds of the request log on SQLite: no query looks at more than a part, and all find theirs by the key. */
import t from 'tap'
import type { RequestFilter } from '../../src/core/ports.ts'
import { SqlRequests } from '../../src/stores/sql/requests.ts'
import { SqliteSql } from '../../src/stores/sql/sqlite.ts'
import { Writer } from '../../src/stores/sqlite/writer.ts'
import { idAt } from './contract-requests.ts'
import { planOf, statementsOf } from './statements.ts'
import { NOON, rowOf, sqliteSubject } from './subject.ts'

const filters: readonly RequestFilter[] = [
  ...[{}, { orgId: 'o' }, { projectId: 'p' }, { keyId: 'k' }, { model: 'm' }, { provider: 'p' }, { status: 500 }],
  ...[{ errorCode: 'e' }, { slower: 1 }, { dearer: 1n }, { since: NOON }, { endedSince: NOON }],
]

t.test('every filter walks the primary key, and sorts nothing', async t => {
  const { requests, path, db } = sqliteSubject(t)
  const ran = statementsOf(t, path)
  for (const filter of filters) {
    ran.length = 0
    await requests.page(filter, 50)
    const read = ran.filter(({ sql }) => sql.includes('FROM requests'))
    t.equal(read.length, 2)
    for (const one of read) {
      const steps = planOf(db, one)
      t.ok(
        steps.some(step => /SEARCH requests USING PRIMARY KEY \(id>\? AND id<\?\)/.test(step)),
        `${Object.keys(filter)}: ${steps.join('; ')}`,
      )
      t.notOk(steps.some(step => step.includes('TEMP B-TREE')))
    }
  }
})

t.test('a part without a match says where the next one begins', async t => {
  const { ledger, organization, db } = sqliteSubject(t)
  const principal = await organization('open', 0n)
  const ids = Array.from({ length: 5 }, (_, n) => idAt(NOON, `${n}`))
  for (const id of ids) await ledger.record(rowOf(principal, id, { status: id === ids[0] ? 500 : 200 }))
  const requests = new SqlRequests(new SqliteSql(db, new Writer(db)), 2)
  const first = await requests.page({ status: 500 }, 10)
  t.strictSame(first, { rows: [], next: ids[3] })
  const second = await requests.page({ status: 500 }, 10, first.next)
  t.strictSame(second, { rows: [], next: ids[1] })
  const third = await requests.page({ status: 500 }, 10, second.next)
  t.match(third, { rows: [{ id: ids[0] }], next: undefined })
})
