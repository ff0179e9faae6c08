/** What every store of OAuth clients and grants must do: each code and refresh token once, each end at once. */
import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import type { NewClient, NewGrant, NewTokens, Principal } from '../../src/core/ports.ts'
import { MAX_CLIENTS, MAX_GRANTS_OF_KEY } from '../../src/stores/rules/oauth.ts'
import { HOUR, type MakeSubject, NOON } from './subject.ts'

const MINUTE = 60_000
const DAY = 24 * HOUR
const ADA = 'ada'
const both = ['mcp:tools', 'usage:read']
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

const client: NewClient = {
  id: 'mgw_cl_one',
  name: 'One',
  redirectUris: ['http://127.0.0.1/cb'],
  grantTypes: ['authorization_code', 'refresh_token'],
  method: 'none',
  secretHash: null,
  scopes: both,
  keyId: null,
}
const registered = { id: client.id, name: client.name, isRegistered: true }

export function oauthContract(t: Test, make: MakeSubject): void {
  const start = async (t: Test) => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    await subject.oauth.clients.register(client)
    return { ...subject, subject, principal, ...subject.oauth }
  }
  type Started = Awaited<ReturnType<typeof start>>
  let made = 0
  const granted = async ({ grants, principal, clock }: Started, changes: Partial<NewGrant> = {}) => {
    const hash = hashOf(`code ${++made}`)
    const begun = await grants.begin({
      client: registered,
      proof: { keyId: principal.keyId },
      scopes: both,
      resource: 'http://gateway/mcp',
      code: { hash, redirectUri: 'http://127.0.0.1/cb', challenge: 'challenge', expiresAt: clock.now + MINUTE },
      ...changes,
    })
    return begun ? { hash, clientId: client.id, redirectUri: 'http://127.0.0.1/cb', challenge: 'challenge' } : undefined
  }
  const tokens = ({ clock }: Started): NewTokens & { refresh: { hash: string; expiresAt: number } } => ({
    access: { hash: hashOf(`access ${++made}`), expiresAt: clock.now + HOUR },
    refresh: { hash: hashOf(`refresh ${made}`), expiresAt: clock.now + 30 * DAY },
  })
  /** A grant whose code was redeemed. */
  const signedIn = async (started: Started, changes: Partial<NewGrant> = {}) => {
    const code = (await granted(started, changes))!
    const issued = tokens(started)
    await started.grants.redeem(code, issued)
    return { code, ...issued }
  }

  t.test('a code becomes tokens, which stand for the key until they end', async t => {
    const started = await start(t)
    const { grants, keys, principal, clock } = started
    const code = (await granted(started))!
    const issued = tokens(started)
    t.same(await grants.redeem(code, issued), { scopes: both })
    const found = await keys.find(issued.access.hash)
    t.same(found, { ...principal, token: { scopes: both, expiresAt: clock.now + HOUR } })
    t.equal(await keys.find(issued.refresh.hash), undefined, 'a refresh token is no credential')
    t.equal(await keys.find(code.hash), undefined, 'nor is a code')
    t.match(await grants.list({ key: principal.keyId }), [
      { client: client.id, clientName: 'One', key: principal.keyId, member: null, scope: both.join(' ') },
    ])
  })

  t.test('a token ends with its key, where that is sooner', async t => {
    const started = await start(t)
    const { accounts, keys, principal, clock } = started
    await accounts.updateKey(principal.keyId, { expiresAt: clock.now + MINUTE })
    const { access } = await signedIn(started)
    t.match(await keys.find(access.hash), { expiresAt: clock.now + MINUTE, token: { expiresAt: clock.now + HOUR } })
  })

  t.test('a key with as many clients as there may be keeps none of others away', async t => {
    const started = await start(t)
    const { clients, grants, subject } = started
    await signedIn(started)
    const other = (n: number) => ({ ...client, id: `mgw_cl_${n}` })
    const use = async (n: number) => granted(started, { client: { ...registered, id: other(n).id } })
    const most = MAX_GRANTS_OF_KEY
    for (let n = 0; n < most; n++) await clients.register(other(n)).then(() => use(n))
    if (subject.exec) {
      await subject.exec(`
        WITH RECURSIVE made(n) AS (SELECT ${most} UNION ALL SELECT n + 1 FROM made WHERE n + 2 < ${MAX_CLIENTS})
        INSERT INTO oauth_clients (id, name, redirect_uris, grant_types, method, scopes, created_at, used_at)
        SELECT 'mgw_cl_' || n, 'a', '[]', '[]', 'none', '', ${NOON + 1}, ${NOON + 1} FROM made`)
    } else {
      for (let n = most; n < MAX_CLIENTS - 1; n++) await clients.register(other(n)).then(() => use(n))
      for (let n = 0; n < most; n++) await use(n)
    }
    const inForce = new Set((await grants.list({ key: started.principal.keyId })).map(grant => grant.client))
    t.equal(inForce.size, most)
    await clients.register(other(-1))
    t.ok(await clients.find(other(-1).id))
    t.notOk(await clients.find(client.id), 'the oldest, whose grant has ended, is gone')
    for (const id of inForce) t.ok(await clients.find(id), 'not one with a grant in force')
    await clients.register(other(-2))
    t.notOk(await clients.find(other(-1).id), 'an unused one goes first')
  })

  t.test('a second use of a code ends the grant', async t => {
    const started = await start(t)
    const { grants, keys, audit } = started
    const { code, access, refresh } = await signedIn(started)
    t.ok(await keys.find(access.hash))
    t.equal(await grants.redeem(code, tokens(started)), 'invalid_grant')
    t.equal(await keys.find(access.hash), undefined)
    const again = { hash: refresh.hash, clientId: client.id, scopes: undefined }
    t.equal(await grants.refresh(again, tokens(started)), 'invalid_grant')
    t.same(
      (await audit.list({ limit: 2 })).map(({ action }) => action),
      ['oauth.revoke', 'oauth.grant'],
    )
  })

  t.test('of many redemptions at once exactly one succeeds', async t => {
    const started = await start(t)
    const code = (await granted(started))!
    const results = await Promise.all(Array.from({ length: 30 }, () => started.grants.redeem(code, tokens(started))))
    t.equal(results.filter(result => result !== 'invalid_grant').length, 1)
  })

  t.test('what does not fit a code is refused and spoils nothing', async t => {
    const started = await start(t)
    const { grants } = started
    const code = (await granted(started))!
    for (const wrong of [
      { hash: hashOf('another') },
      { clientId: 'mgw_cl_two' },
      { redirectUri: 'http://127.0.0.1/other' },
      { challenge: 'another' },
    ]) {
      t.equal(await grants.redeem({ ...code, ...wrong }, tokens(started)), 'invalid_grant', JSON.stringify(wrong))
    }
    t.same(await grants.redeem(code, tokens(started)), { scopes: both })
  })

  t.test('O28 a code ends, and so does what its key may', async t => {
    const started = await start(t)
    const { grants, clock, accounts, principal, subject } = started
    const late = (await granted(started))!
    clock.now += MINUTE
    t.equal(await grants.redeem(late, tokens(started)), 'invalid_grant')
    const code = (await granted(started))!
    const { access, refresh } = await signedIn(started)
    await accounts.revokeKey(principal.keyId)
    t.equal(await grants.redeem(code, tokens(started)), 'invalid_grant')
    const presented = { hash: refresh.hash, clientId: client.id, scopes: undefined }
    t.equal(await grants.refresh(presented, tokens(started)), 'invalid_grant')
    t.equal(await subject.keys.find(access.hash), undefined)
    t.equal(await granted(started), undefined, 'nothing is granted to a key that is over')
    t.same(await grants.list({}), [])
  })

  t.test('refresh tokens rotate, narrow and are good once', async t => {
    const started = await start(t)
    const { grants, keys, clock } = started
    const { access, refresh } = await signedIn(started)
    const presented = { hash: refresh.hash, clientId: client.id, scopes: undefined }
    t.equal(await grants.refresh({ ...presented, clientId: 'mgw_cl_two' }, tokens(started)), 'invalid_grant')
    t.equal(await grants.refresh({ ...presented, hash: access.hash }, tokens(started)), 'invalid_grant')
    t.equal(await grants.refresh({ ...presented, scopes: ['more'] }, tokens(started)), 'invalid_scope')
    const second = tokens(started)
    t.same(await grants.refresh({ ...presented, scopes: ['usage:read'] }, second), { scopes: ['usage:read'] })
    t.match(await keys.find(second.access.hash), { token: { scopes: ['usage:read'] } })
    const third = tokens(started)
    t.same(await grants.refresh({ ...presented, hash: second.refresh.hash }, third), { scopes: both }, 'all again')
    clock.now += 20 * HOUR
    t.equal(await grants.refresh(presented, tokens(started)), 'invalid_grant', 'the first one comes again')
    for (const { access } of [second, third]) t.equal(await keys.find(access.hash), undefined)
    const last = { ...presented, hash: third.refresh.hash }
    t.equal(await grants.refresh(last, tokens(started)), 'invalid_grant', 'the grant has ended')
  })

  t.test('O28 a refresh token ends a month after its issue', async t => {
    const started = await start(t)
    const { refresh } = await signedIn(started)
    started.clock.now += 30 * DAY
    const presented = { hash: refresh.hash, clientId: client.id, scopes: undefined }
    t.equal(await started.grants.refresh(presented, tokens(started)), 'invalid_grant')
  })

  t.test('X18 a clock that goes back an hour lengthens no life, and makes none negative', async t => {
    const started = await start(t)
    const { grants, keys, clock, principal } = started
    const [old, used] = [(await granted(started))!, await signedIn(started)]
    const presented = { hash: used.refresh.hash, clientId: client.id, scopes: undefined }
    clock.now -= HOUR
    t.match(await keys.find(used.access.hash), { token: { expiresAt: NOON + HOUR } }, 'the end stays as it was written')
    t.equal(await grants.sweep(), 0)
    const code = (await granted(started))!
    const fresh = tokens(started)
    t.same(await grants.redeem(code, fresh), { scopes: both }, 'what is made now can be used now')
    t.match(await keys.find(fresh.access.hash), { token: { expiresAt: NOON } })
    t.equal((await grants.list({ key: principal.keyId })).length, 3)
    clock.now = NOON + MINUTE
    t.equal(await grants.redeem(old, tokens(started)), 'invalid_grant', 'a code ends as it was written')
    clock.now = NOON + 30 * DAY
    t.equal(await grants.refresh(presented, tokens(started)), 'invalid_grant', 'as does a refresh token')
  })

  t.test('X18 after the clock went back the tokens and grants made last are the newest all the same', async t => {
    const started = await start(t)
    const { grants, keys, clock } = started
    const first = await signedIn(started)
    let { hash } = first.refresh
    const presented = () => ({ hash, clientId: client.id, scopes: undefined })
    const renew = async () => {
      const next = tokens(started)
      t.same(await grants.refresh(presented(), next), { scopes: both })
      hash = next.refresh.hash
      return next.access
    }
    for (let i = 0; i < 99; i++) await renew()
    clock.now -= HOUR
    const newest = await renew()
    t.ok(await keys.find(newest.hash), 'of 101 tokens the newest is kept')
    t.equal(await keys.find(first.access.hash), undefined, 'and the oldest forgotten')
    clock.now = NOON
    const before = await signedIn(started)
    for (let i = 0; i < 97; i++) await granted(started)
    clock.now -= HOUR
    const after = await signedIn(started)
    await granted(started)
    t.ok(await keys.find(after.access.hash), 'of 101 grants a new one is kept')
    t.equal(await keys.find(newest.hash), undefined, 'and the oldest ended')
    await granted(started)
    t.equal(await keys.find(before.access.hash), undefined, 'then the one that began before the clock went back')
  })

  t.test('a client revokes its own tokens alone', async t => {
    const started = await start(t)
    const { grants, keys } = started
    const one = await signedIn(started)
    const two = await signedIn(started)
    await grants.revokeToken(one.access.hash, 'mgw_cl_two')
    await grants.revokeToken(hashOf('unknown'), client.id)
    t.ok(await keys.find(one.access.hash))
    await grants.revokeToken(one.access.hash, client.id)
    t.equal(await keys.find(one.access.hash), undefined)
    const presented = { hash: one.refresh.hash, clientId: client.id, scopes: undefined }
    const next = tokens(started)
    t.same(await grants.refresh(presented, next), { scopes: both }, 'its grant goes on')
    await grants.revokeToken(next.refresh.hash, client.id)
    t.equal(await keys.find(next.access.hash), undefined, 'a refresh token ends its grant')
    t.ok(await keys.find(two.access.hash), 'and no other one')
  })

  t.test('a login code makes a key of its member, once, which ends with its grant', async t => {
    const started = await start(t)
    const { grants, keys, members, accounts, projects, principal, clock } = started
    const organization = principal.orgId
    await members.add({ organization, email: 'dev@a.example', role: 'developer', projects: ['project-1'] }, ADA)
    const hash = hashOf('login')
    const code = { organization, member: 'dev@a.example', hash, expiresAt: clock.now + 10 * MINUTE }
    t.match(await grants.addLoginCode(code, ADA), { member: 'dev@a.example', project: 'project-1' })
    const { access, refresh } = await signedIn(started, { proof: { loginCode: hash } })
    t.match(await keys.find(access.hash), {
      keyName: 'mcp: One',
      projectId: principal.projectId,
      token: { scopes: both },
    })
    t.match((await accounts.listKeys('project-1')).at(-1), { createdBy: 'dev@a.example', status: 'active' })
    t.equal(await granted(started, { proof: { loginCode: hash } }), undefined, 'a second time')
    t.equal((await accounts.listKeys('project-1')).length, 2, 'which makes no key')
    await grants.revokeToken(refresh.hash, client.id)
    t.match((await accounts.listKeys('project-1')).at(-1), { status: 'revoked' })
    const late = hashOf('late')
    await grants.addLoginCode({ ...code, hash: late }, ADA)
    clock.now += 10 * MINUTE
    t.equal(await granted(started, { proof: { loginCode: late } }), undefined, 'too late')
    const gone = hashOf('gone')
    await grants.addLoginCode({ ...code, hash: gone, expiresAt: clock.now + MINUTE }, ADA)
    await projects.create({ organization, name: 'other' }, ADA)
    await members.update(organization, 'dev@a.example', { projects: ['other'] }, ADA)
    t.equal(await granted(started, { proof: { loginCode: gone } }), undefined, 'without access')
    t.equal((await accounts.listKeys('project-1')).length, 2, 'which makes no key either')
    const named = (member: string, project?: string) =>
      grants.addLoginCode({ organization, member, project, hash: hashOf(`${++made}`), expiresAt: clock.now + 1 }, ADA)
    await t.rejects(named('dev@a.example', 'project-1'), { status: 400, message: /no access/ })
    await members.update(organization, 'dev@a.example', { projects: null }, ADA)
    await t.rejects(named('dev@a.example'), { status: 400, message: /several projects/ })
    await projects.create({ organization, name: 'default' }, ADA)
    t.match(await named('dev@a.example'), { project: 'default' })
  })

  t.test('a client that is removed takes its grants along', async t => {
    const started = await start(t)
    const { clients, grants, keys } = started
    const { access } = await signedIn(started)
    await t.rejects(clients.remove('nobody', ADA), { status: 404, message: /There is no/ })
    t.match(await clients.remove(client.id, ADA), { clientId: client.id, usedAt: new Date(NOON).toISOString() })
    t.equal(await keys.find(access.hash), undefined)
    t.equal(await granted(started), undefined)
    t.same(await clients.list(), [])
    t.ok(await granted(started, { client: { ...registered, isRegistered: false } }), 'a document needs no row')
    t.same(await grants.list({ organization: 'nobody' }).catch(({ status }) => status), 404)
  })

  t.test('a client of a key acts for it, and its grants push out no consents', async t => {
    const started = await start(t)
    const { clients, grants, keys, principal, accounts, audit } = started
    const own = { ...client, id: 'mgw_cl_own', redirectUris: [], keyId: principal.keyId, secretHash: hashOf('secret') }
    await t.rejects(clients.create({ ...own, keyId: 'nobody' }, ADA), { status: 404, message: /There is no/ })
    t.match(await clients.create(own, ADA), { clientId: own.id, key: principal.keyId })
    t.match(await clients.find(own.id), { ...own, usedAt: null })
    const consent = await signedIn(started)
    const first = tokens(started).access
    t.ok(await grants.issue(own, ['usage:read'], 'r', first))
    t.match(await keys.find(first.hash), { token: { scopes: ['usage:read'] }, keyId: principal.keyId })
    t.match(await audit.list({ limit: 1 }), [{ action: 'oauth.grant', actor: `client ${own.id}` }])
    for (let i = 0; i < 100; i++) await grants.issue(own, both, 'r', tokens(started).access)
    t.equal(await keys.find(first.hash), undefined, 'the oldest of its own ends')
    t.ok(await keys.find(consent.access.hash))
    t.notOk(await grants.issue({ ...own, keyId: null }, both, 'r', tokens(started).access))
    await accounts.revokeKey(principal.keyId)
    t.notOk(await grants.issue(own, both, 'r', tokens(started).access))
    await t.rejects(clients.create({ ...own, id: 'mgw_cl_x' }, ADA), { status: 400, message: /not a live regular key/ })
  })

  t.test('grants are listed and ended by the operator', async t => {
    const started = await start(t)
    const { grants, keys, principal, subject, audit } = started
    const one = await signedIn(started)
    const other: Principal = await subject.organization('open', 0n)
    await signedIn(started, { proof: { keyId: other.keyId } })
    const all = await grants.list({})
    t.same(
      all.map(({ key }) => key),
      [principal.keyId, other.keyId],
    )
    t.same(await grants.list({ organization: other.orgId }), [all[1]])
    t.same(await grants.list({ after: all[0]!.id }), [all[1]])
    t.match(await grants.revoke(all[0]!.id, ADA), { id: all[0]!.id })
    t.equal(await keys.find(one.access.hash), undefined)
    t.match(await audit.list({ limit: 1 }), [{ action: 'oauth.revoke', actor: ADA, subject: all[0]!.id, after: null }])
    await t.rejects(grants.revoke(all[0]!.id, ADA), { status: 404, message: /There is no/ })
  })

  t.test('O30 a sweep keeps what is in force or ended today, and removes the rest', async t => {
    const started = await start(t)
    const { grants, clients, clock, accounts, members, principal } = started
    await members.add({ organization: principal.orgId, email: 'b@a.example', role: 'owner' }, ADA)
    const hash = hashOf('login of b')
    const login = { organization: principal.orgId, member: 'b@a.example', hash, expiresAt: clock.now + MINUTE }
    await grants.addLoginCode(login, ADA)
    const { code } = await signedIn(started, { proof: { loginCode: hash } })
    t.equal(await grants.sweep(), 0)
    clock.now += 30 * DAY + 1
    await grants.sweep()
    t.match((await accounts.listKeys('project-1')).at(-1), { status: 'revoked' }, 'the key ends with its last token')
    t.same(await clients.find(client.id), undefined, 'as does a client that nobody uses')
    clock.now += DAY + 1
    t.ok((await grants.sweep()) > 0)
    t.equal(await grants.sweep(), 0)
    t.equal(await grants.redeem(code, tokens(started)), 'invalid_grant')
  })
}
