/** A change of master keys seals every sealed value of the database anew, in small steps that may be cut short. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { reportMissingKeys } from '../../src/app/missing-keys.ts'
import type { ResponseOwner } from '../../src/core/ports.ts'
import { Keyring, keyFile } from '../../src/stores/keyring.ts'
import { jobPlace } from '../../src/stores/rules/jobs.ts'
import { REENCRYPTION_BATCH, SEALED_KINDS, UNREADABLE_SHOWN } from '../../src/stores/rules/reencryption.ts'
import { sealText } from '../../src/stores/sealing.ts'
import { identity, integer, NOON, type SqliteSubject, sqliteSubject } from './subject.ts'

const SHARE = { bytes: 100_000_000, session: 100_000_000, dropped: 1 }
const callback = { url: 'https://hook.example/in', secret: 'whsec_c2VjcmV0' }
const texts = { turn: 'a turn', answer: 'an answer' }

/** A value of each kind; a job has three, one of which is the address of its result. */
async function oneOfEach(subject: SqliteSubject) {
  const principal = await subject.organization('open', 0n)
  const owner: ResponseOwner = { ...principal, session: undefined }
  const key = { organization: principal.orgId, provider: 'acme', label: 'l', secret: 'sk-1234567890', fingerprint: 'f' }
  await subject.policies.providerKeys.add(key, 'test')
  await subject.responses.add({ id: 'resp_1', previousId: null, createdAt: NOON, ...texts }, owner, SHARE)
  const { secret } = await subject.realtimeSecrets.begin({ principal, session: '{"m":1}', expiresAt: NOON + 1000 })
  const job = {
    ...{
      id: 'video_1',
      kind: 'video',
      source: null,
      session: null,
      params: '{}',
      idempotency: null,
      requestHash: null,
    },
    ...{ callback, createdAt: NOON, deadlineAt: NOON + 1000 },
  } as const
  const target = { mapping: 'm', region: null, credential: 'c', wire: 'w', owner: null, price: '{}', discount: 0 }
  const hold = { id: 'h', request: identity('log-1'), principal, amount: 1n, expiresAt: NOON + 1000 }
  await subject.jobs.begin(job, target, hold)
  const { orgId, projectId } = principal
  await subject.contents.add({ id: 'log-2', orgId, projectId, createdAt: NOON, content: '{}' })
  const url = sealText(ringOf(subject), 'https://films.example/1', jobPlace('video_1', 'result_url'))
  subject.db.prepare("UPDATE jobs SET result_kind = 'url', result_url = ?").run(url)
  return { owner, principal, secret }
}
const ringOf = ({ path }: SqliteSubject) => new Keyring({ given: undefined, file: keyFile(path) })

/** Names of the tables in which any column holds the text. */
function tablesWith({ db }: SqliteSubject, text: string): string[] {
  const tables = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
  return tables.filter(
    table => table !== 'audit' && JSON.stringify(db.prepare(`SELECT * FROM ${table}`).all()).includes(text),
  )
}

t.test('every kind of sealed value is under the new master key, and is what it was', async t => {
  const subject = sqliteSubject(t)
  const { owner, secret } = await oneOfEach(subject)
  const before = ringOf(subject).version
  t.same(tablesWith(subject, before).sort(), [...SEALED_KINDS].sort(), 'each kind is a table, and none is missing')

  const { keyVersion, ...done } = await subject.policies.masterKeys.reencrypt(true, 'test')
  const one = { reencrypted: 1, unreadable: 0 }
  t.strictSame(done, {
    reencrypted: 5,
    unreadable: [],
    kinds: { provider_keys: one, responses: one, realtime_secrets: one, jobs: one, contents: one },
  })
  t.not(keyVersion, before)
  t.same(tablesWith(subject, before), [], 'nothing is under the older one')
  t.match(await subject.responses.find('resp_1', owner, 0), texts)
  t.match(await subject.responses.findTurn('resp_1', owner, 0), { turn: texts.turn })
  t.match((await subject.realtimeSecrets.find(createHash('sha256').update(secret).digest('hex')))?.realtime, {
    session: '{"m":1}',
  })
  t.match(await subject.jobs.get('video_1'), { callback, result: { kind: 'url', url: 'https://films.example/1' } })
  t.match(await subject.policies.masterKeys.reencrypt(false, 'test'), { reencrypted: 0, keyVersion })
})

t.test('the start names every kind that is sealed under a master key that is missing, and what to do', async t => {
  const subject = sqliteSubject(t)
  const lines: [fields: object, message: string][] = []
  const log = { error: (fields: object, message: string) => void lines.push([fields, message]) }
  const { masterKeys } = subject.policies
  const never = () => t.fail('no master key is needed')
  await reportMissingKeys(masterKeys, () => [String(never())], log)
  await oneOfEach(subject)
  const { version } = ringOf(subject)
  await reportMissingKeys(masterKeys, () => ['k_other', version], log)
  t.strictSame(lines, [], 'all keys are there')
  await reportMissingKeys(masterKeys, () => ['k_other'], log)
  const remedy =
    'put the missing keys back behind the newest one, in GATEWAY_MASTER_KEY or in master.key beside the database, and restart'
  const kinds = [
    'provider keys',
    'stored responses',
    'client secrets of realtime sessions',
    'results and callbacks of jobs',
    'contents of requests',
  ]
  t.strictSame(
    lines,
    kinds.map(unusable => [{ unusable, missing: [version], remedy }, 'master keys missing']),
  )
})

t.test('of many rows the first and the last are looked at for their master keys', async t => {
  const subject = sqliteSubject(t)
  await oneOfEach(subject)
  const found = async () => {
    const all = await subject.policies.masterKeys.versions()
    return all.find(({ kind }) => kind === 'responses')!.versions
  }
  const columns = subject.db.prepare<[], string>("SELECT name FROM pragma_table_info('responses')").pluck().all()
  const copied = columns.map(name => (name === 'id' ? "'resp_' || at" : name))
  subject.db.exec(`
    WITH RECURSIVE many (at) AS (SELECT 2000 UNION ALL SELECT at + 1 FROM many WHERE at < 4099)
    INSERT INTO responses (${columns.join()}) SELECT ${copied.join()} FROM many, responses WHERE id = 'resp_1'`)
  const put = subject.db.prepare<[string, string]>('UPDATE responses SET master_key = ? WHERE id = ?')
  put.run('k_first', 'resp_1')
  put.run('k_middle', 'resp_3050')
  put.run('k_last', 'resp_4099')
  t.strictSame((await found()).filter(version => version !== ringOf(subject).version).sort(), ['k_first', 'k_last'])
})

t.test('code that seals for the database is listed here, so that no kind is left out of a change of keys', async t => {
  const folder = new URL('../../src/', import.meta.url)
  const sealing = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    name =>
      name.endsWith('.ts') &&
      /\bsealText\(|\bkeyring\(?\)?\.seal\(|\bring\.seal\(/.test(readFileSync(new URL(name, folder), 'utf8')),
  )
  t.same(sealing.sort(), [
    'stores/sealing.ts',
    'stores/sql/contents.ts',
    'stores/sql/jobs/table.ts',
    'stores/sql/master-keys.ts',
    'stores/sql/provider-keys.ts',
    'stores/sql/realtime.ts',
    'stores/sql/responses.ts',
  ])
})

t.test('many rows, and large ones, take many short transactions', async t => {
  const subject = sqliteSubject(t)
  const { owner } = await oneOfEach(subject)
  const add = (id: string, turn: string) =>
    subject.responses.add({ id, previousId: null, createdAt: NOON, turn, answer: '' }, owner, SHARE)
  for (let n = 0; n < REENCRYPTION_BATCH; n++) await add(`resp_small_${n}`, 'x')
  for (let n = 0; n < 6; n++) await add(`resp_large_${n}`, 'x'.repeat(2_000_000))
  const commits = () => integer(subject.db, 'PRAGMA data_version')
  const steps = new Set([commits()])
  let ended = false
  const watch = (): void => {
    if (ended) return
    steps.add(commits())
    setImmediate(watch)
  }
  watch()
  const { kinds } = await subject.policies.masterKeys.reencrypt(true, 'test')
  ended = true
  t.same(kinds.responses, { reencrypted: REENCRYPTION_BATCH + 7, unreadable: 0 })
  t.ok(steps.size >= 6, `${steps.size} transactions`)
})

t.test(
  'a value that cannot be read stays as it is; a row says so once, and the answer names the first of them',
  async t => {
    const subject = sqliteSubject(t)
    const { owner } = await oneOfEach(subject)
    for (let n = 0; n < UNREADABLE_SHOWN; n++) {
      const record = { id: `resp_lost_${n}`, previousId: null, createdAt: NOON, ...texts }
      await subject.responses.add(record, owner, SHARE)
    }
    subject.db.exec("UPDATE responses SET turn = zeroblob(40) WHERE id LIKE 'resp_lost_%'")
    subject.db.exec("UPDATE jobs SET callback_secret = 'deadbeef.AAAA.AAAA'")
    const { unreadable, kinds, reencrypted } = await subject.policies.masterKeys.reencrypt(true, 'test')
    t.equal(reencrypted, 4)
    t.match(kinds.responses, { reencrypted: 1, unreadable: UNREADABLE_SHOWN })
    t.match(kinds.jobs, { reencrypted: 0, unreadable: 1 })
    t.equal(unreadable.length, UNREADABLE_SHOWN)
    const job = subject.db.prepare<[], { callback_secret: string; callback_url: string }>('SELECT * FROM jobs').get()!
    t.equal(job.callback_secret, 'deadbeef.AAAA.AAAA')
    t.ok(job.callback_url.startsWith(ringOf(subject).version), 'other values of that row are sealed anew')
  },
)
