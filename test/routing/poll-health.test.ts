/** What polls of jobs change about where the next job is created. */
import t from 'tap'
import { plugin as openai } from '../../plugins/openai.ts'
import type { Target } from '../../src/core/translator.ts'
import { errors } from '../../src/lib/error.ts'
import { type CandidateTarget, candidateTargetOf } from '../../src/routing/candidate.ts'
import { PollHealth } from '../../src/routing/health.ts'
import { outlierDetectorOf } from '../../src/routing/outlier-detector.ts'
import { TargetQueue } from '../../src/routing/target-queue.ts'
import { target } from '../plugins/wire-kit.ts'
import { catalogOf, Memory, provider } from './kit.ts'

const video = openai.wires.find(({ wire }) => wire === 'openai.videos') as Target['translator']
const FAILED = errors.invalidAnswer('its status is 502', 502)
const POLICY = { failures: 5, baseMs: 30_000, maxMs: 300_000, jitter: 0 }

/** Two providers of one model, the first one preferred. */
function setUp() {
  const memory = new Memory()
  const [one, two] = [provider('one'), provider('two')]
  const { mappings } = catalogOf({ film: { offers: [[one], [two]] } }).models.get('film')!
  const at = (place: number, translator = video): Target => {
    const mapping = mappings[place]!
    return { mapping, provider: mapping.provider, credential: undefined, translator, price: undefined }
  }
  const polls = new PollHealth(memory)
  /** The provider of the first attempt. */
  const first = (org: string, translator = video): string => {
    const steps: CandidateTarget[] = [0, 1].map(place => candidateTargetOf(at(place, translator)))
    const ranked = steps.map(({ candidate, target }) => ({ candidate, targets: [target] }))
    return new TargetQueue({ ranked, failover: true }, outlierDetectorOf(memory.circuits), org).next()!.target.provider
      .id
  }
  const fail = (org: string, times: number) => {
    for (let n = 0; n < times; n++) polls.polled(at(0), org, FAILED)
  }
  return { memory, polls, at, first, fail }
}

t.test('a provider whose polls fail creates no jobs while another one can, and chats as before', t => {
  const { polls, at, first, fail, memory } = setUp()
  fail('org-1', 4)
  t.equal(first('org-1'), 'one')
  fail('org-1', 1)
  t.equal(first('org-1'), 'two')
  t.equal(first('org-1', target().translator), 'one', 'a chat')
  t.equal(first('org-2'), 'one', 'another organization, whose polls do not fail')
  fail('org-2', 5)
  t.equal(first('org-3'), 'two', 'two organizations have seen it')
  t.match(memory.logged, [{ offer: 'one/film polls', scope: 'polls', organization: 'org-1', status: 502 }, {}])
  memory.time += 60_000
  polls.polled(at(0), 'org-1')
  polls.polled(at(0), 'org-2')
  t.strictSame(memory.told, ['circuit closed', 'circuit closed'])
  for (const org of ['org-1', 'org-2', 'org-3']) t.equal(first(org), 'one', `${org}, once polls are answered`)
  t.end()
})

t.test('good polls do not hide creates that fail', t => {
  const { polls, at, first, memory } = setUp()
  const { candidate } = candidateTargetOf(at(0))
  for (let n = 0; n < 5; n++) {
    memory.circuits.failed(candidate.key, POLICY, 'org-1')
    polls.polled(at(0), 'org-1')
  }
  t.equal(first('org-1'), 'two')
  t.end()
})

t.test('polls that fail for another reason than the provider do not count', t => {
  for (const [says, error] of [
    ['an unknown job', FAILED.with({ upstreamStatus: 404 })],
    ['a rate', FAILED.with({ upstreamStatus: 429 })],
    ['a gateway that stops', errors.shuttingDown()],
  ] as const) {
    const { polls, at, first } = setUp()
    for (let n = 0; n < 20; n++) polls.polled(at(0), 'org-1', error)
    t.equal(first('org-1'), 'one', says)
  }
  t.end()
})
