/** What is kept of audio that is fetched for a request, and what becomes of a fetch that fails. */
import t from 'tap'
import type { Ops } from '../../src/core/ops.ts'
import type { MediaFetcher } from '../../src/core/ports.ts'
import type { Target } from '../../src/core/translator.ts'
import { transcriptions } from '../../src/endpoints/inference.ts'
import { Audio } from '../../src/filters/translate/audio.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { exchange, thrown } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'

const request = (url: string | undefined) => ({ model: 'm', url, file: undefined }) as Ops['transcriptions']
const budgetOf = (bytes: number) => new MemoryBudget(bytes, { memory: () => 0 })
const to: Target = { ...target(), translator: {} as Target['translator'] }

interface Fetching {
  readonly memory?: MemoryBudget
  readonly audio: MediaFetcher['audio']
}

function fetching({ memory = budgetOf(1024 * 1024), audio }: Fetching) {
  const services = { memory, media: { audio, image: () => Promise.reject(new Error('no image is asked for')) } }
  const ex = exchange({ endpoint: transcriptions[0]! })
  ex.request = request('https://a.example/b.MP3?c=d.wav')
  return { ex, memory, filter: new Audio(services) }
}

t.test('a file counts against memory until its request ends, and has the type that is known of it', async t => {
  const { ex, memory, filter } = fetching({
    async audio({ take }) {
      take(5)
      return { pieces: [Buffer.from('ab'), Buffer.from('cde')], contentType: 'Text/HTML; charset="x"' }
    },
  })
  await filter.fetched(ex, to)
  const { url, file, fileType } = ex.request as Ops['transcriptions']
  t.strictSame([url, file!.size, file!.extension, file!.contentType], [undefined, 5, 'mp3', 'text/html'])
  t.strictSame(fileType, { extension: 'mp3', contentType: 'audio/mpeg' })
  t.ok(memory.used >= 5)
  t.equal(filter.fetched(ex, to), undefined, 'the next attempt has it')
  const small = { ...to, mapping: { ...to.mapping, maxFile: 4 } }
  t.match(
    thrown(() => filter.fetched(ex, small)),
    { status: 413, failover: true, param: 'url' },
  )
  filter.release(ex)
  t.equal(memory.used, 0)
})

t.test('a fetch that fails gives its memory back, and ends the request', async t => {
  const rows: [says: string, bytes: number, memory: number, fault: Error, status: number | undefined][] = [
    ['an address that is refused', 5, 1024 * 1024, errors.urlNotFetched('url'), 400],
    ['more than there is memory for', 2000, 1000, errors.urlNotFetched('url'), 529],
    ['a fault of ours', 5, 1024 * 1024, new RangeError('odd'), undefined],
  ]
  for (const [says, bytes, size, fault, status] of rows) {
    const { ex, memory, filter } = fetching({
      memory: budgetOf(size),
      async audio({ take }) {
        take(bytes)
        throw fault
      },
    })
    const error: unknown = await filter.fetched(ex, to)!.catch((error: unknown) => error)
    if (status === undefined) t.equal(error, fault, says)
    else {
      t.ok(error instanceof GatewayError, says)
      t.match(error, { status, failover: false }, says)
    }
    t.equal(memory.used, 0, says)
    filter.release(ex)
  }
})

t.test('where only the provider takes no addresses another may, and what was refused is not fetched again', async t => {
  let fetches = 0
  const { ex, filter } = fetching({
    async audio() {
      fetches++
      throw errors.urlNotFetched('url')
    },
  })
  const reads: Target = { ...to, translator: { takesUrls: true } as Target['translator'] }
  const inside: Target = { ...reads, provider: { ...to.provider, inlineMedia: true } }
  const refused = (at: Target) => filter.fetched(ex, at)!.catch((error: unknown) => error)
  t.match(await refused(inside), { status: 400, failover: true, param: 'url' })
  t.match(await refused(inside), { status: 400, failover: true, param: 'url' })
  t.equal(filter.fetched(ex, reads), undefined)
  t.match(await refused(to), { status: 400, failover: false, param: 'url' })
  t.equal(fetches, 1)
})
