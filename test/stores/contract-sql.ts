/** What every driver of `Sql` must do. The maker returns a database with the table `written (name text, n bigint)`. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Flag, Sql } from '../../src/stores/sql/sql.ts'

const INSERT = 'INSERT INTO written (name, n) VALUES ($1, $2)'
const names = async (sql: Sql): Promise<string[]> =>
  (await sql.query<{ name: string }>('SELECT name FROM written ORDER BY name')).map(({ name }) => name)

export function sqlContract(t: Test, make: (t: Test) => Sql | Promise<Sql>): void {
  t.test('integers come back as bigint, conditions as what Boolean reads, bytes as a Buffer', async t => {
    const sql = await make(t)
    const most = 9_223_372_036_854_775_807n
    await sql.query(INSERT, ['most', most])
    await sql.query(INSERT, ['none', null])
    const rows = await sql.query<{ name: string; n: bigint | null }>('SELECT name, n FROM written ORDER BY name')
    t.strictSame(
      rows.map(row => ({ ...row })),
      [
        { name: 'most', n: most },
        { name: 'none', n: null },
      ],
    )
    const [row] = await sql.query<{ count: bigint; sum: bigint; yes: Flag; no: Flag; bytes: Buffer }>(
      `SELECT count(*) AS count, CAST(sum(n) AS bigint) AS sum, EXISTS (SELECT 1 FROM written) AS yes,
         count(*) > 9 AS no, CAST($1 AS ${sql.dialect.bytes}) AS bytes
       FROM written`,
      [new Uint8Array([0, 255])],
    )
    t.strictSame([row!.count, row!.sum, Boolean(row!.yes), Boolean(row!.no)], [2n, most, true, false])
    t.ok(row!.bytes.equals(Buffer.from([0, 255])))
  })

  t.test('a parameter may stand several times, in any order, and be null', async t => {
    const sql = await make(t)
    const text = 'SELECT CAST($2 AS text) AS b, CAST($1 AS text) AS a, CAST($2 AS text) IS NULL AS missing'
    const [row] = await sql.query<{ a: string; b: string | null; missing: Flag }>(text, ['x', null])
    t.strictSame([row!.a, row!.b, Boolean(row!.missing)], ['x', null, true])
  })

  t.test('a NUL, which clients and servers may send in any text, fails no statement', async t => {
    const sql = await make(t)
    await sql.query(INSERT, ['a\0b', 1])
    await sql.transaction(inner => inner.query(INSERT, ['a\0c', 2]))
    t.match(await names(sql), [/^a.b$/s, /^a.c$/s])
    t.same(await sql.query('SELECT 1 AS one FROM written WHERE name = $1', ['a\0']), [])
  })

  t.test('a transaction that rejects leaves nothing, and one that resolves leaves all', async t => {
    const sql = await make(t)
    const work = async (inner: Sql): Promise<string[]> => {
      await inner.query(INSERT, ['a', 1])
      await inner.transaction(again => again.query(INSERT, ['b', 2]))
      return names(inner)
    }
    const failed = sql.transaction(async inner => {
      await work(inner)
      throw new Error('undo')
    })
    await t.rejects(failed, { message: 'undo' })
    t.same(await names(sql), [])
    t.same(await sql.transaction(work), ['a', 'b'])
    t.same(await names(sql), ['a', 'b'])
  })

  t.test('a transaction that rejects does not undo others of the same time', async t => {
    const sql = await make(t)
    const write = (name: string, fails: boolean) =>
      sql.transaction(async inner => {
        await inner.query(INSERT, [name, 1])
        if (fails) throw new Error(name)
      })
    const all = await Promise.allSettled([write('a', false), write('b', true), write('c', false)])
    t.same(
      all.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    t.same(await names(sql), ['a', 'c'])
  })

  t.test('a statement outside a transaction sees nothing of one that is not committed', async t => {
    const sql = await make(t)
    let read: Promise<string[]> | undefined
    await sql
      .transaction(async inner => {
        await inner.query(INSERT, ['a', 1])
        read = names(sql)
        for (let step = 0; step < 5; step++) await inner.query('SELECT 1')
        throw new Error('undo')
      })
      .catch(() => undefined)
    t.same(await read, [])
    await turn()
  })

  t.test('a statement returns the rows that it writes, and fails alone', async t => {
    const sql = await make(t)
    t.same(await sql.query(INSERT, ['a', 1]), [])
    const [row] = await sql.query<{ n: bigint }>('UPDATE written SET n = n + $1 RETURNING n', [4])
    t.equal(row!.n, 5n)
    await t.rejects(sql.query('SELECT nothing FROM written'))
    t.same(await names(sql), ['a'])
  })
}
