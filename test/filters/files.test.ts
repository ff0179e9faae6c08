/** What becomes of files and audio that chat requests name by their addresses. */
import t from 'tap'
import type { ChatRequest, ContentPart } from '../../src/core/chat-request.ts'
import { errors, type GatewayError } from '../../src/core/error.ts'
import { MemoryBudget } from '../../src/core/memory-budget.ts'
import type { FetchedFile, MediaFetcher } from '../../src/core/ports.ts'
import type { Target } from '../../src/core/translator.ts'
import { Files } from '../../src/filters/translate/files.ts'
import { Images } from '../../src/filters/translate/images.ts'
import { exchange } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'

const MIB = 1024 * 1024
const to: Target = { ...target(), translator: {} as Target['translator'] }
const file = (file_data: string, filename?: string) =>
  ({ type: 'file', file: filename ? { filename, file_data } : { file_data } }) as ContentPart
const audio = (data: string) => ({ type: 'input_audio', input_audio: { data, format: 'mp3' } }) as ContentPart

function fetching(content: ContentPart[], fetch: MediaFetcher['audio'], bytes = 64 * MIB) {
  const memory = new MemoryBudget(bytes, { memory: () => 0 })
  const asked: string[] = []
  const media: MediaFetcher = {
    image: () => Promise.reject(new Error('no image is fetched')),
    audio: given => {
      asked.push(given.url)
      return fetch(given)
    },
  }
  const ex = exchange({})
  ex.request = {
    model: 'm',
    messages: [
      { role: 'user', content: 'a' },
      { role: 'user', content },
    ],
  }
  const parts = () => (ex.request as ChatRequest).messages[1]!.content
  return { ex, memory, asked, parts, files: new Files({ memory, media }) }
}
const giving =
  (text: string, contentType: string): MediaFetcher['audio'] =>
  async ({ take }): Promise<FetchedFile> => {
    take(text.length)
    return { pieces: [Buffer.from(text, 'latin1')], contentType }
  }
const data = (type: string, text: string) => `data:${type};base64,${Buffer.from(text, 'latin1').toString('base64')}`

t.test('a request without addresses waits for nothing', t => {
  const { ex, files } = fetching([file(data('application/pdf', 'a')), audio('SUQz')], () =>
    Promise.reject(new Error('no')),
  )
  t.equal(files.fetched(ex, to), undefined)
  t.end()
})

t.test('each address is fetched once for all attempts, and its bytes count until the request ends', async t => {
  const url = 'https://a.example/b.pdf'
  const { ex, memory, asked, parts, files } = fetching([file(url), file(url, 'mine')], giving('%PDF-1', 'text/html'))
  await files.fetched(ex, to)
  t.strictSame(parts(), [
    file(data('application/pdf', '%PDF-1'), 'b.pdf'),
    file(data('application/pdf', '%PDF-1'), 'mine'),
  ])
  t.equal(files.fetched(ex, to), undefined, 'the next attempt has it')
  t.strictSame(asked, [url])
  t.ok(memory.used >= 8)
  files.release(ex)
  t.equal(memory.used, 0)
})

t.test('a file counts once for each of its places, since each is sent', async t => {
  const url = 'https://a.example/b'
  const giving =
    (bytes: number): MediaFetcher['audio'] =>
    async ({ take }) => {
      take(bytes)
      return { pieces: [Buffer.alloc(bytes)], contentType: 'text/plain' }
    }
  const places = Array.from({ length: 200 }, () => file(url))
  const few = fetching(places, giving(1000))
  await few.files.fetched(few.ex, to)
  t.ok(few.memory.used >= 200 * 1000)
  const large = fetching(places, giving(MIB))
  await t.rejects(large.files.fetched(large.ex, to)!, { status: 413, code: 'request_too_large' })
  t.equal(large.memory.used, 0)
  const memory = new MemoryBudget(64 * MIB, { memory: () => 0 })
  const media: MediaFetcher = {
    audio: () => Promise.reject(new Error('no file is fetched')),
    image: async ({ take }) => {
      take(MIB)
      return data('image/png', 'a')
    },
  }
  const image = { type: 'image_url', image_url: { url } } as ContentPart
  const ex = exchange({})
  const request: ChatRequest = {
    model: 'm',
    messages: [{ role: 'user', content: Array.from({ length: 40 }, () => image) }],
  }
  await t.rejects(Promise.resolve(new Images({ memory, media }).inlined(ex, request)), { code: 'image_too_large' })
})

t.test('a file is of the type that its bytes prove, else of the one that its server says', async t => {
  const rows: [part: ContentPart, text: string, contentType: string, becomes: ContentPart][] = [
    [file('https://a.example/'), 'a', 'Text/CSV; charset=x', file(data('text/csv', 'a'))],
    [file('https://a.example/b'), 'a', '', file(data('application/octet-stream', 'a'), 'b')],
    [file('https://a.example/b'), 'a', 'x', file(data('application/octet-stream', 'a'), 'b')],
    [
      file('https://a.example/b'),
      '\x89PNG\r\n\x1a\n    ',
      'x/y',
      file(data('image/png', '\x89PNG\r\n\x1a\n    '), 'b'),
    ],
    [
      audio('https://a.example/b'),
      'OggS',
      '',
      { type: 'input_audio', input_audio: { data: 'T2dnUw==', format: 'ogg' } },
    ],
    [
      audio('https://a.example/b'),
      '????',
      'audio/wav',
      { type: 'input_audio', input_audio: { data: 'Pz8/Pw==', format: 'mp3' } },
    ],
  ]
  for (const [part, text, contentType, becomes] of rows) {
    const { ex, parts, files } = fetching([part], giving(text, contentType))
    await files.fetched(ex, to)
    t.strictSame(parts(), [becomes], JSON.stringify(becomes))
  }
})

t.test("what cannot be had is the request's own fault, and keeps nothing", async t => {
  const many = Array.from({ length: 21 }, (_, i) => file(`https://a.example/${i}`))
  const at = 'messages[1].content[0].file.file_data'
  const large: MediaFetcher['audio'] = async ({ take }) => {
    for (;;) take(MIB)
  }
  const rows: [
    says: string,
    parts: ContentPart[],
    fetch: MediaFetcher['audio'],
    bytes: number,
    status: number,
    param: string | null,
  ][] = [
    [
      'an address that is refused',
      [file('https://a.example/')],
      ({ param }) => Promise.reject(errors.urlNotFetched(param)),
      64 * MIB,
      400,
      at,
    ],
    ['more addresses than are fetched', many, giving('a', ''), 64 * MIB, 400, 'messages[1].content[20].file.file_data'],
    ['more bytes than a request may have', [file('https://a.example/')], large, 1024 * MIB, 413, at],
    ['more than there is memory for', [file('https://a.example/')], large, 8 * MIB, 529, null],
  ]
  for (const [says, parts, fetch, bytes, status, param] of rows) {
    const { ex, memory, files } = fetching(parts, fetch, bytes)
    const error = (await files.fetched(ex, to)!.catch((error: unknown) => error)) as GatewayError
    t.match(error, { status, param, failover: false }, says)
    t.equal(memory.used, 0, says)
    files.release(ex)
  }
})
