/** What SQLite alone promises of stored responses: nothing of them is readable in its file, and none can be moved. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { HOUR, NOON, sqliteSubject } from './subject.ts'

t.test('content is sealed at rest, and bound to its response and its organization', async t => {
  const subject = sqliteSubject(t)
  const { responses, db, path } = subject
  const [a, b] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
  const texts = { turn: 'a secret of the caller', answer: 'a secret of the model' }
  const record = (id: string) => ({ id, previousId: null, createdAt: NOON, ...texts })
  const share = { bytes: 1_000_000, session: 1_000_000, dropped: 1 }
  await responses.add(record('resp_1'), { ...a, session: undefined }, share)
  await responses.add(record('resp_2'), { ...a, session: undefined }, share)
  for (const file of [path, `${path}-wal`]) t.notOk(readFileSync(file).includes('a secret of the'), file)
  t.match(await responses.find('resp_1', { ...a, session: undefined }, 0), texts)
  db.exec("UPDATE responses SET turn = (SELECT turn FROM responses WHERE id = 'resp_2') WHERE id = 'resp_1'")
  await t.rejects(responses.find('resp_1', { ...a, session: undefined }, 0), { status: 503, code: 'store_unavailable' })
  db.prepare('UPDATE responses SET org_id = ?, project_id = ?').run(b.orgId, b.projectId)
  await t.rejects(responses.find('resp_2', { ...b, session: undefined }, 0), { status: 503, code: 'store_unavailable' })
})

t.test('an index finds what is to be dropped, and what goes first', async t => {
  const { db } = sqliteSubject(t)
  const plan = (sql: string) => JSON.stringify(db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all())
  t.match(
    plan(`SELECT responses.id FROM projects CROSS JOIN responses ON responses.project_id = projects.id
      AND responses.created_at < CASE WHEN projects.responses_ms IS NULL THEN 1 ELSE ${HOUR} - projects.responses_ms END`),
    /USING INDEX responses_of_project \(project_id=\? AND created_at<\?\)/,
  )
  t.match(
    plan("SELECT id FROM responses WHERE org_id = '' ORDER BY created_at, id LIMIT 1"),
    /responses_of_organization/,
  )
})
