/** Who reads videos: those of a project are its own, and an id that is not known opens none. */
import t from 'tap'
import type { Principal, Services } from '../../src/core/ports.ts'
import { videos } from '../../src/endpoints/videos.ts'
import { asError } from '../../src/lib/error.ts'
import { exchange } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'

const reads = videos.filter(({ serve }) => serve !== 'upstream').map(({ method, path }) => `${method} ${path}`)
const LIST = 'GET /v1/videos'

/** The status that each read answers the caller with; `session` is the end user who made the video. */
async function statusesOf(principal: Principal, session: string | null = null): Promise<Record<string, number>> {
  const job = {
    id: 'video_1',
    kind: 'video',
    projectId: 'project-1',
    session,
    deletedAt: null,
    state: 'completed',
    completedAt: 1,
  }
  const services = {
    jobs: { get: async () => job, byLogId: async () => job, list: async () => [job] },
    jobRunner: {
      show: () => ({ id: job.id }),
      remove: async () => undefined,
      content: async () => ({ status: 200, type: 'video/mp4', headers: [], chunks: [] }),
    },
  } as unknown as Services
  const statuses: Record<string, number> = {}
  for (const endpoint of videos) {
    if (endpoint.serve === 'upstream') continue
    const ex = exchange({ endpoint, principal })
    Object.assign(ex, { params: { id: 'video_1', log_id: 'log_1' } })
    const answer = await endpoint.serve(ex, services).catch(asError)
    statuses[`${endpoint.method} ${endpoint.path}`] = answer.status
  }
  return statuses
}

t.test('videos are read by keys of their project, and by no key that stands in client programs', async t => {
  const all = (status: number) => Object.fromEntries(reads.map(name => [name, status]))
  t.strictSame(await statusesOf(principalOf()), all(200))
  t.strictSame(await statusesOf(principalOf({ kind: 'publishable' })), all(403))
  const other = await statusesOf(principalOf({ projectId: 'project-2' }))
  t.strictSame(other, { ...all(404), [LIST]: 200 }, 'the list is that of its own project')
})

t.test('an end user reads the videos that it has made, and lists none', async t => {
  const each = (status: number) => ({ ...Object.fromEntries(reads.map(name => [name, status])), [LIST]: 403 })
  const rows: [says: string, caller: Principal, itself: string][] = [
    ['a session', principalOf({ kind: 'session', session: { id: 's', models: undefined } }), 's'],
    ['a session key of the operator', principalOf({ kind: 'session' }), 'key-1'],
  ]
  for (const [says, caller, itself] of rows) {
    t.strictSame(await statusesOf(caller, itself), each(200), `${says}: its own`)
    t.strictSame(await statusesOf(caller, 'another'), each(404), `${says}: another end user's`)
    t.strictSame(await statusesOf(caller), each(404), `${says}: the project's`)
    const project = Object.fromEntries(reads.map(name => [name, 200]))
    t.strictSame(await statusesOf(principalOf(), itself), project, `${says}: the project reads it`)
  }
})
