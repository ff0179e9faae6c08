/** What becomes of files and audio that chat requests name by their addresses. */
import t from 'tap'
import { Registry } from '../../src/app/registry.ts'
import { fetchFrom } from '../../src/codecs/url.ts'
import type { ChatRequest, ContentPart } from '../../src/core/chat-request.ts'
import type { Endpoint } from '../../src/core/endpoint.ts'
import type { FetchedFile, MediaFetcher, Services } from '../../src/core/ports.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import { gemini } from '../../src/endpoints/gemini.ts'
import { chat, images, messages, moderations, ocr, responses, transcriptions } from '../../src/endpoints/inference.ts'
import { videos } from '../../src/endpoints/videos.ts'
import { Files } from '../../src/filters/translate/files.ts'
import { Images } from '../../src/filters/translate/images.ts'
import { translate } from '../../src/filters/translate/index.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { exchange, thrown } from '../core/kit.ts'
import { deepFreeze, target } from '../plugins/wire-kit.ts'

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

t.test('where only the provider takes no addresses another may, and what was refused is not fetched again', async t => {
  const refused = () => Promise.reject(errors.urlNotFetched('x'))
  const { ex, asked, files } = fetching([file('https://a.example/')], refused)
  const inside: Target = { ...to, provider: { ...to.provider, inlineMedia: true } }
  const error = (at: Target) => files.fetched(ex, at)!.catch((error: unknown) => error)
  t.match(await error(inside), { status: 400, code: 'url_not_allowed', failover: true })
  t.match(await error(inside), { status: 400, code: 'url_not_allowed', failover: true })
  ex.input.native = { wire: 'w', body: {} }
  const same = { ...to, translator: { native: { wire: 'w' } } as unknown as Target['translator'] }
  t.equal(files.fetched(ex, same), undefined, 'a provider that takes addresses gets it')
  t.match(await error(to), { status: 400, code: 'url_not_allowed', failover: false })
  t.strictSame(asked, ['https://a.example/'])
  const large = fetching([file('https://a.example/')], giving('a'.repeat(2000), ''), 1000)
  const full = await large.files.fetched(large.ex, inside)!.catch((error: unknown) => error)
  t.match(full, { status: 529, failover: false }, 'missing memory ends the request')
})

/** What clients send, by operation: each names one address, or several. */
const AT = 'https://a.example/'
const talk = (...parts: object[]) => ({ role: 'user', content: [{ type: 'text', text: 'Look' }, ...parts] })
const bodies: readonly (readonly [says: string, endpoint: Endpoint, body: object])[] = [
  ['an image of chat', chat, { model: 'm', messages: [talk({ type: 'image_url', image_url: { url: `${AT}a.png` } })] }],
  ['a file of chat', chat, { model: 'm', messages: [talk({ type: 'file', file: { file_data: `${AT}a.pdf` } })] }],
  [
    'images and a file of Responses',
    responses,
    {
      model: 'm',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look' },
            { type: 'input_image', image_url: `${AT}a.png` },
            { type: 'input_file', file_url: `${AT}a.pdf` },
          ],
        },
      ],
    },
  ],
  [
    'files of Responses in fields of data',
    responses,
    {
      model: 'm',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look' },
            { type: 'input_file', file_data: `${AT}a.pdf` },
            { type: 'input_audio', input_audio: { data: `${AT}a.mp3`, format: 'wav' } },
          ],
        },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', file_data: `${AT}a.pdf` }] },
      ],
    },
  ],
  [
    'a result of a tool of Responses',
    responses,
    {
      model: 'm',
      input: [
        { role: 'user', content: 'Look' },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: `${AT}a.png` }] },
      ],
    },
  ],
  [
    'blocks of Messages',
    messages,
    {
      model: 'm',
      max_tokens: 9,
      messages: [
        talk(
          { type: 'image', source: { type: 'url', url: `${AT}a.png` } },
          { type: 'document', source: { type: 'url', url: `${AT}a.pdf` } },
        ),
      ],
    },
  ],
  [
    'parts of Gemini',
    gemini[0]!,
    {
      contents: [
        {
          role: 'user',
          parts: [
            { text: 'Look' },
            { fileData: { mimeType: 'image/png', fileUri: `${AT}a.png` } },
            { fileData: { mimeType: 'application/pdf', fileUri: `${AT}a.pdf` } },
          ],
        },
      ],
    },
  ],
  [
    'parts to judge',
    moderations,
    {
      input: [
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url: `${AT}a.png` } },
      ],
    },
  ],
  ['a document', ocr, { model: 'm', document: { type: 'document_url', document_url: `${AT}a.pdf` } }],
  ['an image to read', ocr, { model: 'm', document: { type: 'image_url', image_url: { url: `${AT}a.png` } } }],
  ['a recording', transcriptions[0]!, { model: 'm', url: `${AT}a.mp3` }],
  [
    'a film to go by',
    videos[0]!,
    { model: 'm', prompt: 'p', reference_videos: [`${AT}a.mp4`], reference_images: [`${AT}a.png`] },
  ],
  ['the frames of a film', videos[0]!, { model: 'm', prompt: 'p', image: `${AT}a.png`, last_frame: `${AT}a.png` }],
  ['an edit', images[1]!, { model: 'm', prompt: 'p', images: [{ image_url: `${AT}a.png` }] }],
]
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk', 'base64')
const kinds: Record<string, Buffer> = {
  png: PNG,
  pdf: Buffer.from('%PDF-1.4\n'),
  mp3: Buffer.from('ID3aaaaaaaaaaaaa'),
  txt: Buffer.from('Ünd'),
}
const media: MediaFetcher = {
  image: async () => `data:image/png;base64,${PNG.toString('base64')}`,
  audio: async ({ url }) => ({ pieces: [kinds[url.slice(-3)]!], contentType: url.endsWith('txt') ? 'text/plain' : '' }),
}

/** What is sent of a body by a wire; the code of the refusal where nothing is. */
async function sentBy(wire: Translator, endpoint: Endpoint, body: object, inlineMedia: boolean): Promise<string> {
  const ex = Object.assign(exchange({ endpoint }), { params: { model: 'm' } })
  ex.request = endpoint.codec!.decode(deepFreeze(body), ex)
  const supports = new Set(['vision', 'file_input', 'audio_input', 'tools'])
  const to = target({ translator: wire, provider: { inlineMedia }, mapping: { supports } as object })
  ex.target = to
  const services = { memory: new MemoryBudget(64 * MIB, { memory: () => 0 }), media, now: () => 0 }
  const filter = translate.create({}, services as unknown as Services)
  try {
    await filter.handle!(ex, async () => ({ status: 200, headers: [], events: (async function* () {})() }))
    return JSON.stringify([ex.outbound.request, ex.outbound.parts])
  } catch (thrown) {
    if (!(thrown instanceof GatewayError) || thrown.status !== 400) throw thrown
    return String(thrown.code)
  } finally {
    filter.finish?.(ex, 'ok' as never)
  }
}

t.test('no wire sends an address to a provider that gets data alone, in whatever form it came', async t => {
  const passedOn = new Set<string>()
  const sent = new Set<string>()
  for (const wire of new Registry().wires.values()) {
    for (const [says, endpoint, body] of bodies) {
      if (endpoint.operation?.name !== wire.op) continue
      if ((await sentBy(wire, endpoint, body, false)).includes(AT)) passedOn.add(`${wire.wire}: ${says}`)
      const inside = await sentBy(wire, endpoint, body, true)
      t.notOk(inside.includes(AT), `${wire.wire}: ${says}`)
      if (inside.startsWith('[')) sent.add(`${wire.wire}: ${says}`)
    }
  }
  // Elsewhere they pass, and so this looks in the right places.
  for (const one of [
    'openai.chat: an image of chat',
    'openai.responses: images and a file of Responses',
    'openai.responses: files of Responses in fields of data',
    'openai.responses: a result of a tool of Responses',
    'anthropic.messages: blocks of Messages',
    'openai.moderations: parts to judge',
    'mistral.ocr: a document',
    'mistral.ocr: an image to read',
    'deepgram.transcriptions: a recording',
    'bytedance.videos: a film to go by',
    'bytedance.videos: the frames of a film',
  ]) {
    t.ok(passedOn.has(one), one)
    const isRefused = /a film to/.test(one)
    t.equal(sent.has(one), !isRefused, one)
  }
  t.ok(sent.has('gemini.vertex: parts of Gemini'))
})

t.test('media at a private host that the operator lists are fetched here, whatever their provider takes', async t => {
  const hosts = ['http://minio:9000/', 'https://minio/', 'http://10.0.0.5/', 'http://localhost:81/', 'http://[::1]:9/']
  const at = (body: object, host: string) => JSON.parse(JSON.stringify(body).replaceAll(AT, host)) as object
  const outcomes = new Set<string>()
  for (const wire of new Registry().wires.values()) {
    for (const [says, endpoint, body] of bodies) {
      if (endpoint.operation?.name !== wire.op) continue
      for (const host of hosts) {
        const name = `${wire.wire}: ${says} at ${host}`
        fetchFrom([])
        const decoded = () =>
          endpoint.codec!.decode(at(body, host), Object.assign(exchange({ endpoint }), { params: { model: 'm' } }))
        t.match(thrown(decoded), { status: 400, code: 'url_not_allowed' }, name)
        fetchFrom(hosts.map(host => new URL(host).origin))
        // Nobody fetches a film to go by.
        if (says === 'a film to go by') {
          t.match(thrown(decoded), { status: 400, code: 'url_not_allowed', param: 'reference_videos[0]' }, name)
          continue
        }
        const sent = await sentBy(wire, endpoint, at(body, host), false)
        t.notOk(sent.includes(host), name)
        const inside = await sentBy(wire, endpoint, at(body, host), true)
        t.equal(sent, inside, `${name}, as within the network`)
        if (sent.startsWith('[')) outcomes.add(`${wire.wire}: ${says}`)
      }
    }
  }
  fetchFrom([])
  for (const one of [
    'openai.chat: an image of chat',
    'openai.responses: images and a file of Responses',
    'anthropic.messages: blocks of Messages',
    'gemini.generate: parts of Gemini',
    'openai.moderations: parts to judge',
    'mistral.ocr: a document',
    'deepgram.transcriptions: a recording',
    'bytedance.videos: the frames of a film',
  ])
    t.ok(outcomes.has(one), one)
})

t.test('AI Studio gets what a user shows as data, and what the model showed as it came', async t => {
  const shown = { fileData: { mimeType: 'image/png', fileUri: 'https://b.example/shown.png' } }
  const given = (name: string, mimeType: string) => ({ fileData: { mimeType, fileUri: `${AT}${name}` } })
  const body = {
    contents: [
      { role: 'user', parts: [{ text: 'Draw' }] },
      { role: 'model', parts: [shown] },
      {
        role: 'user',
        parts: [given('a.png', 'image/png'), given('a.pdf', 'application/pdf'), given('a.mp3', 'audio/mpeg')],
      },
    ],
  }
  const sent = await sentBy(wireOf('gemini.generate'), gemini[0]!, body, false)
  t.notOk(sent.includes(AT))
  t.ok(sent.includes(shown.fileData.fileUri))
  for (const kind of ['png', 'pdf', 'mp3']) t.ok(sent.includes(data64(kind)), kind)
  for (const type of ['image/png', 'application/pdf', 'audio/mp3']) t.ok(sent.includes(type), type)
  const vertex = await sentBy(wireOf('gemini.vertex'), gemini[0]!, body, false)
  for (const name of ['a.png', 'a.pdf', 'a.mp3']) t.ok(vertex.includes(`${AT}${name}`), 'Vertex AI fetches it')
})

const data64 = (kind: string) => kinds[kind]!.toString('base64')
const wireOf = (name: string) => [...new Registry().wires.values()].find(({ wire }) => wire === name)!
/** What only the client's own form carries, at its wire: with these parts in it. */
const own = {
  responses: (content: object[]) => ({
    model: 'm',
    truncation: 'auto',
    metadata: { image_url: `${AT}a.png` },
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: { file_url: { const: AT } } } }],
    input: [{ role: 'user', content: [{ type: 'input_text', text: 'Look' }, ...content] }],
  }),
  messages: (content: object[]) => ({
    model: 'm',
    max_tokens: 9,
    stop_sequences: ['END'],
    messages: [
      { role: 'user', content: 'q' },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 't', name: 'f', input: { at: { type: 'url', url: AT } } }],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't', content },
          { type: 'text', text: 'go' },
        ],
      },
    ],
    tools: [{ name: 'f', input_schema: { type: 'object', examples: [{ type: 'url', url: AT }] } }],
  }),
  gemini: (parts: object[]) => ({
    contents: [
      { role: 'user', parts: [{ text: 'Look' }, ...parts] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: { fileUri: AT } } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { fileUri: AT } } }] },
    ],
    safetySettings: [{ category: 'HARM_CATEGORY_HATE_SPEECH', threshold: 'BLOCK_NONE' }],
    generationConfig: { mediaResolution: 'MEDIA_RESOLUTION_LOW' },
  }),
}

/** A document of blocks. */
const within = (block: object) => ({ type: 'document', source: { type: 'content', content: [block] } })

t.test("a client's own body keeps all of its fields where a provider gets data alone", async t => {
  const pdf = { type: 'base64', media_type: 'application/pdf', data: data64('pdf') }
  const png = { type: 'base64', media_type: 'image/png', data: data64('png') }
  const rows: [wire: string, endpoint: Endpoint, body: (parts: object[]) => object, named: object, held: object][] = [
    [
      'openai.responses',
      responses,
      own.responses,
      { type: 'input_image', image_url: `${AT}a.png`, detail: 'original' },
      { type: 'input_image', image_url: `data:image/png;base64,${data64('png')}`, detail: 'original' },
    ],
    [
      'openai.responses',
      responses,
      own.responses,
      { type: 'input_file', file_url: `${AT}a.pdf`, prompt_cache_breakpoint: { mode: 'explicit' } },
      {
        type: 'input_file',
        filename: 'a.pdf',
        file_data: `data:application/pdf;base64,${data64('pdf')}`,
        prompt_cache_breakpoint: { mode: 'explicit' },
      },
    ],
    [
      'openai.responses',
      responses,
      own.responses,
      { type: 'input_audio', input_audio: { data: `${AT}a.mp3`, format: 'wav' } },
      { type: 'input_audio', input_audio: { data: data64('mp3'), format: 'mp3' } },
    ],
    [
      'anthropic.messages',
      messages,
      own.messages,
      { type: 'image', source: { type: 'url', url: `${AT}a.png` }, cache_control: { type: 'ephemeral' } },
      { type: 'image', source: png, cache_control: { type: 'ephemeral' } },
    ],
    [
      'anthropic.messages',
      messages,
      own.messages,
      { type: 'document', title: 't', citations: { enabled: true }, source: { type: 'url', url: `${AT}a.pdf` } },
      { type: 'document', title: 't', citations: { enabled: true }, source: pdf },
    ],
    [
      'anthropic.messages',
      messages,
      own.messages,
      { type: 'document', source: { type: 'url', url: `${AT}a.txt` } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Ünd' } },
    ],
    [
      'anthropic.messages',
      messages,
      own.messages,
      within({ type: 'image', source: { type: 'url', url: `${AT}a.png` } }),
      within({ type: 'image', source: png }),
    ],
    [
      'anthropic.vertex',
      messages,
      own.messages,
      { type: 'image', source: { type: 'url', url: `${AT}a.png` } },
      { type: 'image', source: png },
    ],
    [
      'gemini.vertex',
      gemini[0]!,
      own.gemini,
      { fileData: { mimeType: 'text/plain', fileUri: `${AT}a.pdf` }, partMetadata: { a: 1 } },
      { inlineData: { mimeType: 'application/pdf', data: data64('pdf') }, partMetadata: { a: 1 } },
    ],
    [
      'gemini.generate',
      gemini[0]!,
      own.gemini,
      { fileData: { fileUri: `${AT}a.png` } },
      { inlineData: { mimeType: 'image/png', data: data64('png') } },
    ],
  ]
  for (const [name, endpoint, body, named, held] of rows) {
    const says = `${name}: ${JSON.stringify(named).slice(0, 60)}`
    const wire = wireOf(name)
    const expected = await sentBy(wire, endpoint, body([held]), true)
    t.strictSame(JSON.parse(await sentBy(wire, endpoint, body([named]), true)), JSON.parse(expected), says)
    t.equal(
      expected,
      await sentBy(wire, endpoint, body([held]), false),
      `${says}: and without addresses nothing changes`,
    )
  }
})

t.test('an address where no media is read is refused to a provider of data alone', async t => {
  const text = { type: 'text', text: 'a' }
  const rows: [wire: string, endpoint: Endpoint, body: object][] = [
    ['anthropic.messages', messages, own.messages([{ ...text, image_url: { url: AT } }])],
    ['anthropic.messages', messages, { ...own.messages([]), system: [{ type: 'image_url', image_url: { url: AT } }] }],
    ['anthropic.messages', messages, own.messages([{ type: 'x', source: { type: 'url', url: AT } }])],
    ['anthropic.messages', messages, own.messages([{ type: 'x', source: { url: AT } }])],
    ['anthropic.messages', messages, own.messages([{ ...text, input_audio: { data: AT, format: 'mp3' } }])],
    ['anthropic.messages', messages, { ...own.messages([]), mcp_servers: [{ type: 'url', name: 'a', url: AT }] }],
    ['openai.responses', responses, own.responses([{ type: 'input_text', text: 'a', file_url: AT }])],
    ['openai.responses', responses, own.responses([{ type: 'input_text', text: 'a', file_data: 'gs://b/c' }])],
    ['openai.responses', responses, own.responses([{ type: 'input_text', text: 'a', video_url: { url: AT } }])],
    ['gemini.vertex', gemini[0]!, own.gemini([{ text: 'a', image_url: AT }])],
  ]
  for (const [name, endpoint, body] of rows) {
    const code = await sentBy(wireOf(name), endpoint, body, true)
    t.equal(code, 'model_not_supported', `${name} ${JSON.stringify(body).slice(0, 300)}`)
  }
})
