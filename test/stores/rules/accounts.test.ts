/** What an operator may make of organizations, keys, money and policies, and what each refusal says. */
import t from 'tap'
import { cacheTtl, checkOwners, checkRoll, expiryOf, keyStatus, ttlOf } from '../../../src/stores/rules/accounts.ts'
import { checkPayment, checkRefund, isRepeated, MAX_AMOUNT, storable } from '../../../src/stores/rules/amounts.ts'
import { chosen, noSuch, showNamed, unknownName } from '../../../src/stores/rules/names.ts'
import {
  checkManifests,
  checkProviderKeys,
  checkRules,
  checkScope,
  ruleOwner,
} from '../../../src/stores/rules/policies.ts'
import { auditText, auditValue } from '../../../src/stores/sql/audit.ts'
import { thrown } from '../../core/kit.ts'

t.test('only a session ends by itself', async t => {
  t.same([expiryOf('key', undefined, 5), expiryOf('publishable', 7, 5), expiryOf('session', 7, 5)], [null, 7, 7])
  t.equal(expiryOf('session', undefined, 5), 900_005)
  for (const [revoked, expiresAt, expected] of [
    [false, null, 'active'],
    [false, 101, 'active'],
    [false, 100, 'expired'],
    [true, 100, 'revoked'],
  ] as const) {
    t.equal(keyStatus({ revoked, expiresAt }, 100), expected)
  }
})

t.test('a key that is over, or is a session, has no successor', async t => {
  checkRoll('k', false, 'active')
  t.match(
    thrown(() => checkRoll('k', true, 'active')),
    { status: 400, message: /is a session/ },
  )
  for (const status of ['revoked', 'expired'] as const) {
    t.match(
      thrown(() => checkRoll('k', false, status)),
      { status: 400, message: new RegExp(`is ${status}`) },
    )
  }
})

t.test('the cache of a project is as it was, as it is set, or usual; and off on a plan', async t => {
  for (const [wanted, was, expected] of [
    [undefined, 5, 5],
    [undefined, null, null],
    ['on', 5, 5],
    ['on', null, 60_000],
    [null, 5, null],
    [7, 5, 7],
  ] as const) {
    t.equal(ttlOf(wanted, was), expected)
  }
  t.same([cacheTtl(5, false), cacheTtl(null, false), cacheTtl(5, true)], [5, undefined, undefined])
})

t.test('the last owner stays one', async t => {
  checkOwners('admin', 0)
  checkOwners('owner', 2)
  t.match(
    thrown(() => checkOwners('owner', 1)),
    { status: 400, message: /only owner/ },
  )
})

t.test('a booking that a balance cannot hold is refused, and one that is reported again is none', async t => {
  checkPayment(MAX_AMOUNT - 5n, 5n, 'a')
  t.match(
    thrown(() => checkPayment(MAX_AMOUNT - 5n, 6n, 'a')),
    { status: 400, message: /^At most 0.000000005 USD.*"a"/ },
  )
  checkRefund(5n - MAX_AMOUNT, 5n, 'a')
  t.match(
    thrown(() => checkRefund(5n - MAX_AMOUNT, 6n, 'a')),
    { status: 400, message: /^At most 0.000000005 USD can be taken/ },
  )
  t.same([storable(MAX_AMOUNT + 1n), storable(5n)], [MAX_AMOUNT, 5n])
  const entry = { orgId: 'a', amount: 5n }
  t.equal(isRepeated(undefined, entry, 'topup', 'r'), false)
  t.equal(isRepeated(entry, { ...entry }, 'topup', 'r'), true)
  for (const other of [
    { ...entry, orgId: 'b' },
    { ...entry, amount: 6n },
  ]) {
    t.match(
      thrown(() => isRepeated(entry, other, 'topup', 'r')),
      { status: 400, message: /another topup/ },
    )
  }
})

t.test('an id goes before a name, and a refusal says what there is', async t => {
  const [one, two] = [
    { id: '1', name: 'a' },
    { id: 'a', name: 'b' },
  ]
  const of = (wanted: string, found: (typeof one)[]) => chosen('thing', wanted, found, showNamed)
  t.equal(of('1', [one]), one)
  t.equal(of('a', [one, two]), two)
  t.equal(of('c', []), undefined)
  t.match(
    thrown(() => of('c', [one, two])),
    { status: 404, message: '"c" names 2 things; give the id of one' },
  )
  t.match(unknownName('thing', 'c', [one, two], showNamed), {
    status: 404,
    message: 'There are: a (id 1), b (id a).',
  })
  t.match(unknownName('thing', 'c', [], showNamed), { status: 404, message: 'There are none yet.' })
  t.equal(noSuch('rule', 'r').message, 'There is no rule with the id "r".')
  t.equal(noSuch('rule', 'r', 'a').message, 'There is no rule with the id "r" in "a".')
})

t.test('a policy has a bound, and each rule names whom it narrows', async t => {
  for (const [check, most] of [
    [checkRules, 200],
    [checkProviderKeys, 100],
    [checkManifests, 10],
  ] as const) {
    check(most - 1)
    t.match(
      thrown(() => check(most)),
      { status: 400, message: `may have ${most}` },
    )
  }
  for (const scope of [{}, { key: 'k' }, { organization: 'o', key: 'k' }, { organization: 'o', member: 'm' }]) {
    checkScope(scope)
  }
  t.match(
    thrown(() => checkScope({ member: 'm' })),
    { status: 400, param: 'organization' },
  )
  t.match(
    thrown(() => checkScope({ organization: 'o', member: 'm', key: 'k' })),
    { status: 400, param: 'key' },
  )
  t.equal(ruleOwner('o'), 'o')
  t.match(
    thrown(() => ruleOwner(null)),
    { status: 400, param: 'organization' },
  )
})

t.test('amounts stand in the audit log as dollars', async t => {
  t.equal(
    auditText({ limit: 2_000_000_000n, limits: [{ spent: 1n }] }),
    '{"limit":"2","limits":[{"spent":"0.000000001"}]}',
  )
  t.same([auditText(null), auditText(undefined), auditValue(null)], [null, null, null])
  t.same(auditValue('{"a":1}'), { a: 1 })
})
