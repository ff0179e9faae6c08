/** What a store of responses must do: keep them for their owners alone, within a share and a time. */
import type { Test } from 'tap'
import type { Principal, ResponseOwner, ResponseRecord } from '../../src/core/ports.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { noDemands } from '../../src/policy/compliance.ts'
import { HOUR, type MakeSubject, NOON, type Subject } from './subject.ts'

const BY = 'tester'
const SHARE = { bytes: 1_000_000, session: 1_000_000, dropped: 3 }
const ownerOf = ({ orgId, projectId }: Principal, session?: string): ResponseOwner => ({ orgId, projectId, session })
const record = (id: string, turn = `turn of ${id}`, at = NOON): ResponseRecord => {
  return { id, previousId: null, createdAt: at, turn, answer: '{}' }
}
const keeping = async (subject: Subject, responsesMs = 2 * HOUR): Promise<Principal> => {
  const principal = await subject.organization('open', 0n)
  await subject.projects.update(principal.projectId, { responsesMs }, BY)
  return principal
}

export function responseStoreContract(t: Test, make: MakeSubject): void {
  t.test('a response is found by its owners alone, until it is removed', async t => {
    const subject = await make(t)
    const [a, b] = [await keeping(subject), await keeping(subject)]
    const { id: project } = await subject.projects.create({ organization: a.orgId, name: 'another' }, BY)
    const { responses } = subject
    const kept = { ...record('resp_1', '{"text":"ß\u{1f600}"}'), previousId: 'resp_0' }
    t.ok(await responses.add(kept, ownerOf(a, 'session-1'), SHARE))
    t.ok(await responses.add(record('resp_2'), ownerOf(a), SHARE))
    const owners: readonly (readonly [string, ResponseOwner, string[]])[] = [
      ['keys of the project', ownerOf(a), ['resp_1', 'resp_2']],
      ['its own session', ownerOf(a, 'session-1'), ['resp_1']],
      ['another session', ownerOf(a, 'session-2'), []],
      ['another project', { ...ownerOf(a), projectId: project }, []],
      ['another organization', ownerOf(b), []],
      ['another organization that names the project', { ...ownerOf(b), projectId: a.projectId }, []],
    ]
    for (const [who, owner, expected] of owners) {
      const found = await Promise.all(['resp_1', 'resp_2', 'resp_3'].map(id => responses.find(id, owner, 0)))
      t.strictSame(
        found.flatMap(one => one?.id ?? []),
        expected,
        who,
      )
      if (expected.length === 0) t.notOk(await responses.remove('resp_1', owner, 0), who)
    }
    t.strictSame(await responses.find('resp_1', ownerOf(a), 0), kept)
    t.strictSame(await responses.findTurn('resp_1', ownerOf(a), 0), { previousId: 'resp_0', turn: kept.turn })
    t.equal(await responses.findTurn('resp_1', ownerOf(b), 0), undefined)
    t.ok(await responses.remove('resp_1', ownerOf(a), 0))
    t.notOk(await responses.remove('resp_1', ownerOf(a), 0))
    t.equal(await responses.find('resp_1', ownerOf(a), 0), undefined)
  })

  t.test('what is too old is neither found nor removed by its owners, and is dropped in time', async t => {
    const subject = await make(t)
    const { responses, clock } = subject
    const owner = ownerOf(await keeping(subject))
    for (const [id, age] of [
      ['resp_old', 3],
      ['resp_new', 1],
    ] as const) {
      await responses.add(record(id, 'x', NOON - age * HOUR), owner, SHARE)
    }
    const since = NOON - 2 * HOUR
    t.equal(await responses.find('resp_old', owner, since), undefined)
    t.notOk(await responses.remove('resp_old', owner, since))
    t.ok(await responses.find('resp_new', owner, since))
    t.equal(await responses.prune(), 1)
    t.equal(await responses.prune(), 0)
    t.equal(await responses.find('resp_old', owner, 0), undefined)
    clock.now += HOUR + 1
    t.equal(await responses.prune(), 1)
  })

  t.test('all goes of projects that keep none any more, and of organizations that keep no data', async t => {
    const subject = await make(t)
    const { responses, projects, policies } = subject
    const [a, b, c] = [await keeping(subject), await keeping(subject), await keeping(subject)]
    for (const one of [a, b, c]) await responses.add(record(`resp_${one.orgId}`), ownerOf(one), SHARE)
    await projects.update(a.projectId, { responsesMs: null }, BY)
    await policies.compliance.change(b.orgId, { ...noDemands, noLogging: true }, BY)
    t.equal(await responses.prune(), 2)
    t.ok(await responses.find(`resp_${c.orgId}`, ownerOf(c), 0))
    const refused = await projects.update(b.projectId, { responsesMs: HOUR }, BY).catch((thrown: unknown) => thrown)
    t.ok(refused instanceof GatewayError && refused.status === 400 && /zero data retention/.test(refused.message))
    const create = { organization: b.orgId, name: 'new', responsesMs: HOUR }
    t.match(await projects.create(create, BY).catch((thrown: unknown) => thrown), { status: 400 })
    t.match(await projects.create({ ...create, organization: c.orgId }, BY), { responsesMs: HOUR })
  })

  t.test('an organization that passes its share loses its oldest, and no other one does', async t => {
    const subject = await make(t)
    const { responses } = subject
    const [a, b] = [ownerOf(await keeping(subject)), ownerOf(await keeping(subject))]
    const share = { bytes: 5 * 1514, session: 5 * 1514, dropped: 3 }
    const turn = 'x'.repeat(1000)
    await responses.add(record('resp_b', turn), b, share)
    for (let n = 0; n < 7; n++) {
      t.ok(await responses.add(record(`resp_${n}`, turn, NOON + n), a, share))
    }
    const left = async () => {
      const ids = ['resp_b', ...Array.from({ length: 7 }, (_, n) => `resp_${n}`)]
      const found = await Promise.all(ids.map(id => responses.find(id, id === 'resp_b' ? b : a, 0)))
      return found.flatMap(one => one?.id ?? [])
    }
    t.strictSame(await left(), ['resp_b', 'resp_2', 'resp_3', 'resp_4', 'resp_5', 'resp_6'])
    t.notOk(await responses.add(record('resp_large', 'x'.repeat(7000)), a, share), 'three that go are too few for it')
    t.strictSame(await left(), ['resp_b', 'resp_5', 'resp_6'])
    t.notOk(await responses.add(record('resp_huge', 'x'.repeat(8000)), a, share), 'larger than the share')
    t.strictSame(await left(), ['resp_b', 'resp_5', 'resp_6'])
    await responses.remove('resp_5', a, 0)
    t.ok(await responses.add(record('resp_large', 'x'.repeat(5000)), a, share), 'what was removed takes no room')
    t.strictSame(await left(), ['resp_b', 'resp_6'])
  })

  t.test('a session that passes its share loses its own oldest responses, and no others', async t => {
    const subject = await make(t)
    const { responses } = subject
    const principal = await keeping(subject)
    const [key, eve, ada] = [ownerOf(principal), ownerOf(principal, 'eve'), ownerOf(principal, 'ada')]
    const share = { bytes: 100 * 1514, session: 2 * 1514, dropped: 3 }
    const turn = 'x'.repeat(1000)
    await responses.add(record('resp_key', turn, NOON), key, share)
    await responses.add(record('resp_ada', turn, NOON), ada, share)
    for (let n = 0; n < 4; n++) t.ok(await responses.add(record(`resp_${n}`, turn, NOON + 1 + n), eve, share))
    const left = async () => {
      const ids = ['resp_key', 'resp_ada', ...Array.from({ length: 4 }, (_, n) => `resp_${n}`)]
      return (await Promise.all(ids.map(id => responses.find(id, key, 0)))).flatMap(one => one?.id ?? [])
    }
    t.strictSame(await left(), ['resp_key', 'resp_ada', 'resp_2', 'resp_3'])
    t.notOk(
      await responses.add(record('resp_large', 'x'.repeat(3000)), eve, share),
      'larger than the share of a session',
    )
    t.ok(await responses.add(record('resp_large', 'x'.repeat(3000)), key, share), 'a key has no such bound')
    await responses.remove('resp_3', eve, 0)
    t.ok(await responses.add(record('resp_0', turn, NOON + 9), eve, share))
    t.strictSame(await left(), ['resp_key', 'resp_ada', 'resp_0', 'resp_2'])
  })
}
