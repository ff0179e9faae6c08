/** What a store of contents must do: keep them sealed, for the time of their project, and for nobody who keeps no data. */
import type { Test } from 'tap'
import { noDemands } from '../../src/policy/compliance.ts'
import { HOUR, type MakeSubject, NOON } from './subject.ts'

const BY = 'test'
const content = JSON.stringify({ request: { messages: [{ role: 'user', content: 'My secret' }] }, answer: [] })

export function contentStoreContract(t: Test, make: MakeSubject): void {
  t.test('contents are found for the time of their project, and then removed', async t => {
    const subject = await make(t)
    const { contents, clock } = subject
    const { orgId, projectId } = await subject.organization('open', 0n)
    await subject.projects.update(projectId, { contentMs: 2 * HOUR }, BY)
    await contents.add({ id: 'a', orgId, projectId, createdAt: NOON, content })
    await contents.add({ id: 'b', orgId, projectId, createdAt: NOON + HOUR, content: '1' })
    t.equal(await contents.find('a'), content)
    t.equal(await contents.find('c'), undefined)
    clock.now = NOON + 2.5 * HOUR
    t.equal(await contents.find('a'), undefined)
    t.equal(await contents.find('b'), '1')
    t.equal(await contents.prune(), 1)
    t.equal(await contents.prune(), 0)
    await subject.projects.update(projectId, { contentMs: null }, BY)
    t.equal(await contents.find('b'), undefined)
    t.equal(await contents.prune(), 1)
  })

  t.test('an organization that keeps no data keeps no content', async t => {
    const subject = await make(t)
    const { contents } = subject
    const { orgId, projectId } = await subject.organization('open', 0n)
    const [project] = await subject.projects.list(orgId)
    t.equal(project!.contentMs, null)
    await subject.projects.update(projectId, { contentMs: HOUR }, BY)
    await contents.add({ id: 'a', orgId, projectId, createdAt: NOON, content })
    const found = (await subject.projects.list(orgId)).find(({ id }) => id === projectId)
    t.equal(found!.contentMs, HOUR)
    await subject.policies.compliance.change(orgId, { ...noDemands, noLogging: true }, BY)
    t.equal(await contents.find('a'), undefined)
    await t.rejects(subject.projects.update(projectId, { contentMs: HOUR }, BY), /zero data retention/)
    t.equal(await contents.prune(), 1)
  })
}
