/** Every driver of `Sql` against its contract. */
import t, { type Test } from 'tap'
import { SqliteSql } from '../../src/stores/sql/sqlite.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { Writer } from '../../src/stores/sqlite/writer.ts'
import { sqlContract } from './contract-sql.ts'

function sqlite(t: Test): SqliteSql {
  const db = openDatabase(':memory:', ['CREATE TABLE written (name TEXT, n INTEGER) STRICT'])
  t.teardown(() => db.close())
  return new SqliteSql(db, new Writer(db))
}

t.test('sqlite', async t => sqlContract(t, sqlite))
