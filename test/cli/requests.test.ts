/** `gatewayctl requests`, on a log in SQLite. */
import t, { type Test } from 'tap'
import { adminListener } from '../../src/admin/server.ts'
import type { Admin } from '../../src/cli/admin.ts'
import { run } from '../../src/cli/program.ts'
import { tail } from '../../src/cli/requests.ts'
import type { RequestRow } from '../../src/core/ports.ts'
import { fakeContext, TOKEN } from '../admin/fake.ts'
import { idAt } from '../stores/contract-requests.ts'
import { NOON, rowOf, sqliteSubject } from '../stores/subject.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }
const attempt = {
  ...{ provider: 'acme', model: 'large', status: 200, error_type: 'none', started_ms: 2, connect_ms: null },
  ...{ ttft_ms: 30, duration_ms: 80, credential: 'f1e2d3', reason: null },
}

async function shell(t: Test, count: number) {
  const subject = sqliteSubject(t)
  const principal = await subject.organization('open', 0n)
  for (let n = 0; n < count; n++) {
    const detail = { held: '0.25', attempts: [attempt] }
    const changes = {
      at: NOON + n,
      detail,
      requestedModel: n === 1 ? '=1+1, "x"' : 'large',
      status: n === 2 ? 502 : 200,
    }
    await subject.ledger.record(rowOf(principal, idAt(NOON + n, `row-${n}`), changes))
  }
  const add = (name: string, changes: Partial<RequestRow>) =>
    subject.ledger.record(rowOf(principal, idAt(NOON, name), { at: NOON, ...changes }))
  const context = Object.assign(fakeContext(), { requests: subject.requests })
  const listener = await adminListener({ context, token: TOKEN, listen: '127.0.0.1:0', log })
  t.teardown(() => listener.close())
  const ctl = async (...args: string[]) => {
    const output = { out: '', err: '' }
    const code = await run(['requests', ...args], {
      cwd: t.testdir({}),
      env: { GATEWAY_ADMIN: `http://${listener.address}`, GATEWAY_ADMIN_TOKEN: TOKEN },
      out: text => {
        output.out += text
      },
      err: text => {
        output.err += text
      },
    })
    return { code, ...output }
  }
  return { ctl, principal, add }
}

t.test('rows are listed newest first, with the members that programs rely on', async t => {
  const { ctl, principal } = await shell(t, 3)
  const { code, out } = await ctl('list', '--json', '--limit', '2')
  t.equal(code, 0)
  const rows = JSON.parse(out) as unknown[]
  t.equal(rows.length, 2)
  t.strictSame(rows[0], {
    id: idAt(NOON + 2, 'row-2'),
    request_id: `caller-${idAt(NOON + 2, 'row-2')}`,
    at: new Date(NOON + 2).toISOString(),
    org: principal.orgId,
    project: principal.projectId,
    key: principal.keyId,
    end_user: null,
    tags: {},
    endpoint: 'chat',
    requested_model: 'large',
    used_model: 'large',
    used_provider: 'acme',
    status: 502,
    error_code: null,
    outcome: 'ok',
    streamed: false,
    cached: false,
    duration_ms: 812,
    ttft_ms: null,
    usage: { prompt: 100, completion: 20, input_cache_read: 60, internal_reasoning: 5 },
    cost: '0',
    held: '0.25',
  })
  const failed = JSON.parse((await ctl('list', '--json', '--status', '502', '--slower', '500ms')).out) as unknown[]
  t.match(failed, [{ status: 502 }])
  t.match((await ctl('list')).out, /^id +at +key +model[\s\S]*row-0/)
  t.equal((await ctl('list', '--dearer', '1')).out, 'no requests\n')
  t.match(await ctl('list', '--slower', 'soon'), { code: 1, err: /a time such as 500ms/ })
})

t.test('rows are listed by end user and by tag, and show both', async t => {
  const { ctl, principal, add } = await shell(t, 1)
  await add('labelled', { endUser: '=ann', tags: { team: 'blue', feature: 'chat' } })
  const labels = { end_user: '=ann', tags: { team: 'blue', feature: 'chat' } }
  for (const filter of [
    ['--end-user', '=ann'],
    ['--tag', 'team=blue'],
    ['--tag', 'team=blue', '--end-user', '=ann'],
  ]) {
    t.match(JSON.parse((await ctl('list', '--json', ...filter)).out), [{ ...labels, project: principal.projectId }])
  }
  t.equal((await ctl('list', '--tag', 'team=red')).out, 'no requests\n')
  t.match(await ctl('list', '--tag', 'team'), { code: 1, err: /a tag such as team=blue/ })
  t.match((await ctl('show', idAt(NOON, 'labelled'))).out, /end_user +=ann[\s\S]*tags +team=blue, feature=chat/)
  const csv = (await ctl('export', '--format', 'csv', '--tag', 'team=blue')).out
  t.ok(csv.includes(`,'=ann,"{""team"":""blue"",""feature"":""chat""}",`), csv)
})

t.test('one request is shown with its attempts', async t => {
  const { ctl } = await shell(t, 1)
  const id = idAt(NOON, 'row-0')
  t.match(JSON.parse((await ctl('show', id, '--json')).out), { id, attempts: [attempt] })
  t.match((await ctl('show', id)).out, /held +0\.25[\s\S]*acme +large +200/)
  t.match(await ctl('show', 'nobody'), { code: 1, err: /There is no row "nobody"/ })
})

t.test('more rows than a part has are exported, as NDJSON and as CSV', async t => {
  const { ctl } = await shell(t, 501)
  const lines = (await ctl('export')).out.trimEnd().split('\n')
  t.equal(new Set(lines.map(line => (JSON.parse(line) as { id: string }).id)).size, 501)
  const csv = (await ctl('export', '--format', 'csv')).out.trimEnd().split('\r\n')
  t.equal(csv.length, 502)
  t.match(csv[0], /^id,request_id,at,org,project,key,end_user,tags,/)
  t.ok(csv.at(-2)!.includes(`,"'=1+1, ""x""",`), 'a formula stays a text')
})

t.test('tail shows each request that ends once, the first look none', async t => {
  const ended = ['b', 'a'].map(id => ({ id }))
  const looks = [[{ id: 'old' }], [...ended, { id: 'old' }], [{ id: 'c' }, ...ended]]
  const command = async () => ({ rows: looks.shift() ?? [], next: null })
  const admin = { command } as unknown as Admin
  const session = { admin, json: true, config: undefined, io: { env: {}, cwd: '', out() {}, err() {} }, print() {} }
  const shown: string[] = []
  for await (const part of tail(session, {}, async () => {})) {
    shown.push(part.map(({ id }) => id).join(''))
    if (shown.length === 2) break
  }
  t.strictSame(shown, ['ab', 'c'])
})

t.test('tail looks back over 15 minutes, or over the time of --since', async t => {
  for (const [given, since] of [
    [undefined, '15m'],
    ['2h', '2h'],
  ]) {
    const asked: unknown[] = []
    const command = async (_: string, args: object) => {
      asked.push(args)
      return { rows: [{ id: `${asked.length}` }], next: null }
    }
    const admin = { command } as unknown as Admin
    const session = { admin, json: true, config: undefined, io: { env: {}, cwd: '', out() {}, err() {} }, print() {} }
    for await (const _ of tail(session, { since: given }, async () => {})) break
    t.match(asked, [{ since }, { since }])
  }
})
