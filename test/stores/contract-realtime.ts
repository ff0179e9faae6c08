/** What every store of client secrets must do: each for its key, for a short time, with its settings sealed. */
import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import { MAX_SECRETS } from '../../src/stores/rules/realtime.ts'
import type { MakeSubject } from './subject.ts'

const MINUTE = 60_000
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

export function realtimeContract(t: Test, make: MakeSubject): void {
  const begun = async (t: Test) => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 5n)
    const { realtimeSecrets: secrets, clock } = subject
    const begin = (ms = MINUTE) => secrets.begin({ principal, session: '{"model":"m"}', expiresAt: clock.now + ms })
    return { ...subject, principal, secrets, begin }
  }

  t.test('a secret makes its key, with the settings that it was made with, until it expires', async t => {
    const { secrets, principal, clock, begin } = await begun(t)
    const { secret, id } = await begin()
    t.match(secret, /^ek_[\w-]{43}$/)
    t.match(id, /^sess_[0-9a-f]{24}$/)
    const found = await secrets.find(hashOf(secret))
    t.match(found, { keyId: principal.keyId, orgId: principal.orgId, expiresAt: clock.now + MINUTE })
    t.strictSame(found?.realtime, { id, session: '{"model":"m"}' })
    t.ok(await secrets.find(hashOf(secret)), 'again, for as long as it lives')
    t.equal(await secrets.find(hashOf(`${secret}x`)), undefined)
    clock.now += MINUTE
    t.equal(await secrets.find(hashOf(secret)), undefined)
  })

  t.test('a secret that the caller of a token begins is of the same end user', async t => {
    const { secrets, principal, clock } = await begun(t)
    const caller = { ...principal, issuer: 'https://login.example.com', endUser: 'ann' }
    const { secret, id } = await secrets.begin({ principal: caller, session: '{}', expiresAt: clock.now + MINUTE })
    t.match(await secrets.find(hashOf(secret)), { endUser: 'ann', realtime: { id, session: '{}' } })
  })

  t.test('a secret ends with its key', async t => {
    const { secrets, principal, accounts, begin } = await begun(t)
    const { secret } = await begin()
    t.match(await secrets.live(principal.keyId), { keyId: principal.keyId })
    await accounts.revokeKey(principal.keyId)
    t.equal(await secrets.find(hashOf(secret)), undefined)
    t.equal(await secrets.live(principal.keyId), undefined)
  })

  t.test('of one key so many secrets are live, and those that end first make room', async t => {
    const { secrets, begin } = await begun(t)
    const { secret: first } = await begin(MINUTE)
    const { secret: longer } = await begin(5 * MINUTE)
    for (let made = 2; made < MAX_SECRETS + 1; made++) await begin(2 * MINUTE)
    t.equal(await secrets.find(hashOf(first)), undefined)
    t.ok(await secrets.find(hashOf(longer)))
  })
}
