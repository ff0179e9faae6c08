/** What the end of a request takes, of whom, and what becomes of requests whose process has ended. */
import t from 'tap'
import type { Funds } from '../../../src/core/ports.ts'
import {
  billOf,
  chargedBy,
  type LostRequest,
  orphanRow,
  ownHold,
  restOf,
} from '../../../src/stores/rules/settlement.ts'

t.test('a request and its storage are charged to the right accounts', async t => {
  for (const [funds, cost, storage, charge, planned] of [
    ['credits', 40n, 3n, 43n, 0n],
    ['credits', null, 3n, 3n, 0n],
    ['plan', 40n, 3n, 3n, 40n],
    ['premium', 40n, 0n, 0n, 40n],
    ['byok', 40n, 3n, 3n, 0n],
  ] as const) {
    const bill = billOf(funds, { cost, storage })
    t.same(bill, { cost: cost ?? 0n, charge, planned }, funds)
    t.equal(chargedBy(bill), charge + planned)
  }
})

t.test('of a request that was taken for an orphan what is missing is charged, and nothing is given back', async t => {
  for (const [orphan, charged, funds, cost, rest] of [
    ['credits', 15n, 'credits', 40n, { cost: 25n, charge: 25n, planned: 0n }],
    ['credits', 50n, 'credits', 40n, { cost: 0n, charge: 0n, planned: 0n }],
    ['plan', 15n, 'plan', 40n, { cost: 25n, charge: 0n, planned: 25n }],
    ['plan', 15n, 'credits', 40n, { cost: 25n, charge: 40n, planned: 0n }],
    ['credits', 15n, 'premium', 40n, { cost: 25n, charge: 0n, planned: 40n }],
  ] as const) {
    const before = { cost: charged, funds: orphan, charged }
    t.same(restOf(before, billOf(funds, { cost, storage: 0n })), rest, `${orphan} ${charged}, then ${funds} ${cost}`)
  }
})

t.test('a spooled row ends the hold that it names, else the last of its caller at that provider', async t => {
  const held = (id: string, funds: Funds, provider: string) => ({ id, funds, provider })
  const holds = [held('1', 'byok', 'a'), held('2', 'byok', 'a'), held('3', 'byok', 'b'), held('4', 'credits', 'a')]
  const named = { id: '4', funds: 'credits', budgets: null } as const
  t.equal(ownHold(holds, named, { provider: 'b' })?.id, '4')
  t.equal(ownHold(holds, undefined, { provider: 'a' })?.id, '2')
  t.equal(ownHold(holds, undefined, { provider: 'c' }), undefined)
  t.equal(ownHold(holds, { ...named, id: '5' }, { provider: 'a' }), undefined)
})

t.test('the row of an orphan says what was noted of it, and costs nothing where that was nothing', async t => {
  const request: LostRequest = {
    ...{ id: 'a', requestId: 'caller', at: 5, orgId: 'o', projectId: 'p', keyId: 'k' },
    ...{ endpoint: 'chat', requestedModel: 'm', model: 'm', provider: 'x', progress: undefined },
  }
  const noted = { usage: { prompt: 3 }, cost: null }
  t.match(orphanRow(request), {
    outcome: 'orphaned',
    status: 0,
    usage: {},
    cost: 0n,
    streamed: false,
    estimated: false,
  })
  const row = orphanRow({ ...request, progress: noted })
  t.match(row, { ...noted, id: 'a', requestId: 'caller', at: 5, streamed: true, estimated: true })
  t.notOk('progress' in row)
})
