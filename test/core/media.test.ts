/** What holds and charges of other operations than chat come to: characters, pages, requests, hours, sound. */
import t from 'tap'
import { nativeOf as geminiNative } from '../../src/codecs/gemini/native.ts'
import { nativeOf as messagesNative } from '../../src/codecs/messages/native.ts'
import { nativeOf as responsesNative } from '../../src/codecs/responses/native.ts'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import type { Price } from '../../src/core/money.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import type { NativeRequest } from '../../src/core/wire.ts'
import {
  chat,
  embeddings,
  images,
  moderations,
  ocr,
  rerank,
  speech,
  transcriptions,
} from '../../src/endpoints/inference.ts'
import { videos } from '../../src/endpoints/videos.ts'
import { errors } from '../../src/lib/error.ts'
import { costWith, estimate } from '../../src/metering/estimate.ts'
import { imageFanOut } from '../../src/operations/images/decoder.ts'
import { spokenTokens } from '../../src/operations/speech/spoken-tokens.ts'
import { videoJob } from '../../src/operations/videos/job.ts'
import type { VideoRequest } from '../../src/operations/videos/request.ts'
import { pdf, pages as tree } from '../media/pdf-kit.ts'
import { target } from '../plugins/wire-kit.ts'
import { exchange } from './kit.ts'
import { flat } from './prices.ts'

const offer = (price: Price, tokenizer?: string): Target => ({
  ...target({ model: { ...(tokenizer !== undefined && { tokenizer }) } }),
  price,
})
const perMillion = (rates: Record<string, string>) => flat(rates)
const perUnit = (axis: string, usd: bigint): Price => ({ rates: { [axis]: usd }, tiers: [] })
const PICO = 1_000_000_000_000n
const NANO = 1_000_000_000n

t.test('a hold is the cost of the request: exact where it can be computed before the answer', async t => {
  const say = { model: 'm', input: 'Hi \u{1f44b}', characters: 4, stream: true }
  const slow = { ...say, instructions: 'x'.repeat(40), speed: 0.25 }
  const titled = { model: 'm', input: ['abcd', 'abcd'], title: 'x'.repeat(4000) }
  const chinese = Array.from({ length: 100 }, () => '漢'.repeat(1600))
  const documents = Array.from({ length: 101 }, () => 'abcd')
  const page = { type: 'document_url', document_url: 'https://a.example/a.pdf' }
  const hear = { model: 'm', seconds: 36, response_format: 'json' }
  const rows: [says: string, endpoint: typeof speech, request: object, to: Target, nano: bigint][] = [
    ['characters', speech, say, offer(perMillion({ prompt: '15' }), 'characters'), 60_000n],
    ['tokens of speech', speech, say, offer(perMillion({ prompt: '1', output_audio: '12' })), 2_000n + 240_000n],
    ['instructions, slowly', speech, slow, offer(perMillion({ prompt: '1', output_audio: '12' })), 12_000n + 960_000n],
    ['inputs with a title each', embeddings, titled, offer(perMillion({ prompt: '1' })), 2_002_000n],
    ['search units', rerank[0]!, { query: 'x', documents }, offer(perUnit('request', PICO / 500n)), 4_000_000n],
    [
      'pieces of 500 tokens',
      rerank[0]!,
      { query: 'x', documents: chinese },
      offer(perUnit('request', PICO)),
      3n * NANO,
    ],
    [
      'pieces beside a long query',
      rerank[0]!,
      { query: chinese[0]!.slice(0, 400), documents: chinese },
      offer(perUnit('request', PICO)),
      6n * NANO,
    ],
    [
      'tokens of ranking',
      rerank[0]!,
      { query: 'xxxx', documents: ['abcd'] },
      offer(perMillion({ prompt: '50' })),
      100_000n,
    ],
    ['one moderation', moderations, { input: ['a', 'b'] }, offer(perUnit('request', PICO / 100_000n)), 10_000n],
    ['listed pages', ocr, { document: page, pages: '0-4,7' }, offer(perUnit('ocr_page', PICO / 250n)), 24_000_000n],
    ['pages of an address', ocr, { document: page }, offer(perUnit('ocr_page', PICO / 250n)), 40_000_000n],
    ['hours', transcriptions[0]!, hear, offer(perUnit('input_audio_hour', (PICO * 36n) / 100n)), 3_600_000n],
  ]
  for (const [says, endpoint, request, to, nano] of rows) {
    const ex = exchange({ endpoint, request })
    // Planning reads the length before any target is known.
    t.ok(ex.prompt.tokens >= 0)
    ex.target = to
    const held = estimate(ex)
    t.equal(held && costWith(held, held.least), nano, says)
  }
})

t.test('what is held for speech covers it in any script, and no more than 1.5 times English', t => {
  const rows: [says: string, text: string, seconds: number][] = [
    ['English at 15 characters a second', 'The quick brown fox jumps over the lazy dog. '.repeat(90), 270],
    ['Chinese at 4.5', '漢字'.repeat(2048), 910],
    ['Korean at 6', '안녕 하세요'.repeat(600), 600],
    ['kanji at 3.7', '東京都'.repeat(1000), 810],
    ['Russian at 14', 'Привет, мир. '.repeat(300), 279],
    ['Hindi at 12', 'नमस्ते '.repeat(500), 292],
    ['digits of large numbers at 1.6', '777777 '.repeat(500), 1900],
    ['signs by their names', '% & @ € ½ '.repeat(400), 1000],
  ]
  for (const [says, text, seconds] of rows) t.ok(spokenTokens(text) >= seconds * 21, `${says}: ${spokenTokens(text)}`)
  const [[, english, seconds]] = rows as [(typeof rows)[number]]
  t.ok(spokenTokens(english) <= 1.5 * 21 * seconds)
  t.end()
})

t.test('what a provider fetches by itself may be held for up to the most that it reads', async t => {
  const page = (more: object = {}) => ({
    document: { type: 'document_url', document_url: 'https://a.example/a' },
    ...more,
  })
  const talk = (file: object, n = 1) => ({
    ...{ model: 'm', max_tokens: 1 },
    messages: [{ role: 'user', content: Array.from({ length: n }, () => ({ type: 'file', file })) }],
  })
  const pages = offer(perUnit('ocr_page', PICO / 250n))
  const hours = offer(perUnit('input_audio_hour', PICO / 4n))
  const tokens: Target = {
    ...target({ mapping: { contextLength: 1_000_000 } }),
    price: perMillion({ prompt: '10', completion: '50' }),
  }
  const data = 'data:application/pdf;base64,JVBERi0='
  const document_url = `data:application/pdf;base64,${pdf(tree(1)).toString('base64')}`
  const zip = 'data:application/zip;base64,UEsDBA=='
  const rows: [says: string, endpoint: typeof chat, request: object, to: Target, more: bigint][] = [
    ['pages', ocr, page(), pages, 990n * 4_000_000n],
    ['listed pages', ocr, page({ pages: '0-4' }), pages, 0n],
    ['a PDF', ocr, page({ document: { type: 'document_url', document_url } }), pages, 0n],
    [
      'an image',
      ocr,
      page({ document: { type: 'image_url', image_url: `data:image/png;base64,${'A'.repeat(2000)}` } }),
      pages,
      0n,
    ],
    ['a PDF called an image', ocr, page({ document: { type: 'image_url', image_url: data } }), pages, 0n],
    ['what is no PDF', ocr, page({ document: { type: 'document_url', document_url: zip } }), pages, 999n * 4_000_000n],
    ['hours', transcriptions[0]!, { model: 'm', url: 'https://a.example/a' }, hours, 2_500_000_000n - 41_666_667n],
    ['hours of a file', transcriptions[0]!, { model: 'm', seconds: 36, file: {} }, hours, 0n],
    ['the context', chat, talk({ file_data: 'https://a.example/a' }), tokens, 9_760_000_000n],
    ['of several files', chat, talk({ file_id: 'https://youtu.be/a' }, 2), tokens, 4_600_000_000n],
    ['a PDF that comes along', chat, talk({ file_data: document_url }), tokens, 0n],
    ['one whose pages are not found', chat, talk({ file_data: data }), tokens, 0n],
    ['text', chat, talk({ file_data: 'data:text/plain;base64,SGk=' }), tokens, 0n],
    ['a WebM video', chat, talk({ file_data: 'data:video/webm;base64,GkXfo0KGgQ==' }), tokens, 0n],
  ]
  for (const [says, endpoint, request, to, more] of rows) {
    const ex = exchange({ endpoint, request })
    ex.target = to
    t.equal(estimate(ex)!.unmeasured, more, says)
  }
})

t.test('each of several requests for one is held for, at the rates of its own prompt', async t => {
  const dear = { prompt: PICO / 100_000n, completion: 0n, request: PICO / 100n }
  const price: Price = { rates: { ...dear, prompt: PICO / 1_000_000n }, tiers: [{ above: 1000, rates: dear }] }
  const text = 'x'.repeat(3200)
  const prompts = { model: 'm', messages: [{ role: 'user', content: text }], max_tokens: 1 }
  const many = { ...prompts, prompts: true, messages: Array.from({ length: 20 }, () => prompts.messages[0]) }
  const pictures = { ...target().translator, fanOut: imageFanOut(() => 4) } as Translator
  const rows: [says: string, endpoint: typeof chat, request: object, translator: Translator, nano: bigint][] = [
    ['one prompt', chat, prompts, target().translator, 10_800_000n],
    ['twenty, which are long together', chat, many, target().translator, 20n * 10_000_000n + 160_000_000n],
    ['ten pictures', images[0]!, { model: 'm', n: 10, prompt: text }, pictures, 3n * 10_800_000n],
  ]
  for (const [says, endpoint, request, translator, nano] of rows) {
    const ex = exchange({ endpoint, request, target: { ...offer(price), translator } })
    t.equal(costWith(estimate(ex)!, 0), nano, says)
  }
})

t.test("pages that a provider's tools may read are held for", async t => {
  const messages = (...tools: object[]) => messagesNative({ messages: [], tools }, exchange(), 0)
  const gemini = (...tools: object[]) => geminiNative({ contents: [], tools }, undefined, 1, 0)
  const fetches = { type: 'web_fetch_20250910', name: 'web_fetch' }
  const defined = { type: 'tool_definition', definition: { ...fetches, max_uses: 4 } }
  const added = (role: string, block: object) =>
    messagesNative({ messages: [{ role, content: [block] }] }, exchange(), 0)
  const rows: [says: string, native: NativeRequest, pages: number][] = [
    ['no tool', messages(), 0],
    ['a tool of the client', messages({ name: 'web_fetch_mine', input_schema: { type: 'object' } }), 0],
    ['ten where no limit is named', messages(fetches), 10],
    ['of two tools', messages(fetches, { ...fetches, max_uses: 1 }), 11],
    ['one at least', messages({ ...fetches, max_uses: 0 }), 1],
    ['as many as are allowed', messages({ ...fetches, max_uses: 4 }), 4],
    ['ten at most', messages({ ...fetches, max_uses: 1e6 }), 10],
    ['of tools that turns define', added('system', { type: 'tool_addition', tool: defined }), 4],
    [
      'of tools in what a turn repeats',
      added('user', { type: 'compaction', content: 'a', tool_changes: [{ type: 'tool_addition', tool: defined }] }),
      4,
    ],
    ['of a tool that is only named', added('system', { type: 'tool_addition', tool: { name: 'web_fetch' } }), 0],
    ['no tool of Gemini', gemini({ functionDeclarations: [] }, { codeExecution: {} }), 0],
    ['addresses of Gemini', gemini({ urlContext: {} }), 10],
  ]
  for (const [says, native, pages] of rows) {
    const request = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'abcd' }] }
    const ex = exchange({ request, target: offer(perMillion({ prompt: '1', completion: '2' })) })
    ex.input.native = native
    t.equal(costWith(estimate(ex)!, 0), BigInt(1000 + pages * 24_000_000), says)
  }
})

t.test('bodies say whether a tool of theirs runs at the provider', t => {
  const messages = (...tools: object[]) => messagesNative({ messages: [], tools }, exchange(), 0)
  const gemini = (...tools: object[]) => geminiNative({ contents: [], tools }, undefined, 1, 0)
  const responses = (...tools: object[]) => responsesNative({ input: 'a', tools }, undefined, 1, undefined, 0)
  const definition = { type: 'tool_search_tool_regex_20251119', name: 'tool_search' }
  const content = [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }]
  const rows: [native: NativeRequest, loops: boolean][] = [
    [messages(), false],
    [messages({ name: 'f' }, { type: 'custom' }, { type: 'bash_20250124' }, { type: 'memory_20250818' }), false],
    [messages({ type: 'code_execution_20250825' }), true],
    [messages({ type: 'web_search_20250305' }), true],
    [messages(definition), true],
    [messagesNative({ messages: [{ role: 'system', content }] }, exchange(), 0), true],
    [messagesNative({ messages: [], mcp_servers: [{}] }, exchange(), 0), true],
    [gemini({ functionDeclarations: [], urlContext: null }), false],
    [gemini({ functionDeclarations: [] }, { codeExecution: {} }), true],
    [responses({ type: 'function' }, { type: 'custom' }, { type: 'local_shell' }), false],
    [responses({ type: 'code_interpreter' }), true],
    [responses({ type: 'mcp' }), true],
  ]
  for (const [{ loops, body }, runs] of rows) t.equal(loops, runs, JSON.stringify(body))
  t.end()
})

t.test('sound that no report counts is measured as it comes, and marked as estimated', async t => {
  const price = perMillion({ prompt: '1', output_audio: '12' })
  const begun = (more: Target = offer(price)) =>
    exchange({ endpoint: speech, request: { model: 'm', input: 'Hi', characters: 2, stream: true }, target: more })
  const rows: [says: string, contentType: string, pieces: Buffer[], seconds: number][] = [
    ['samples', 'audio/wav', [Buffer.alloc(48_000)], 1],
    ['FLAC', 'audio/flac', [Buffer.alloc(48_000)], 2],
    ['MP3', 'audio/mpeg', [Buffer.alloc(160), Buffer.alloc(48_000)], 3.01],
    ['Opus', 'audio/opus', [Buffer.alloc(48_000)], 12],
  ]
  for (const [says, contentType, pieces, seconds] of rows) {
    const whole = Buffer.concat(pieces)
    const tokens = Math.ceil(seconds * 21 - 1e-6)
    for (const size of [whole.length, 4096, 11]) {
      const ex = begun()
      for (let at = 0; at < whole.length; at += size) {
        const bytes = whole.subarray(at, at + size)
        ex.observe([{ type: 'bytes', bytes, ...(at === 0 && { contentType }) }])
      }
      t.equal(ex.meter.tokens, tokens, `${says}: what is held must cover`)
      ex.meter.complete(true)
      t.match(ex.usage, { completion: tokens, output_audio: tokens }, `${says} in pieces of ${size}`)
      t.equal(ex.estimated, true)
      t.equal(ex.meter.cost?.total, BigInt(tokens) * 12_000n + 1_000n)
    }
  }
  const counted = begun()
  counted.observe([{ type: 'bytes', bytes: Buffer.alloc(48_000) }])
  counted.observe([{ type: 'usage', usage: { prompt: 2, completion: 5, output_audio: 5 } }])
  counted.meter.complete(false)
  t.strictSame([counted.usage, counted.estimated], [{ prompt: 2, completion: 5, output_audio: 5 }, false])
  const free = begun(offer(perMillion({ prompt: '15' }), 'characters'))
  free.observe([{ type: 'bytes', bytes: Buffer.alloc(48_000) }])
  t.equal(free.meter.tokens, 0, 'where characters are paid for')
})

t.test('pictures of a prompt and annotated pages have prices of their own', async t => {
  const cost = (price: Price, usage: object) => {
    const ex = exchange({ endpoint: ocr, request: { model: 'm' }, target: offer(price) })
    Object.assign(ex.usage, usage)
    return ex.meter.cost?.total ?? null
  }
  const drawn = perMillion({ prompt: '5', image_input: '10', completion: '40' })
  t.equal(cost(drawn, { prompt: 50, image_input: 40 }), 10n * 5_000n + 40n * 10_000n)
  t.equal(cost(perMillion({ prompt: '5', completion: '40' }), { prompt: 50, image_input: 40 }), 50n * 5_000n)
  const pages: Price = { rates: { ocr_page: PICO / 250n, ocr_page_annotated: PICO / 200n }, tiers: [] }
  t.equal(cost(pages, { ocr_page: 2, ocr_page_annotated: 3 }), 8_000_000n + 15_000_000n)
  t.equal(cost(perUnit('ocr_page', PICO / 250n), { ocr_page_annotated: 3 }), 12_000_000n, 'as plain ones without')
})

t.test('a transcription by the hour that is cut costs what is known of it, never nothing known', async t => {
  const request = { model: 'm', seconds: 1800, stream: true }
  const begun = () => {
    const ex = exchange({
      endpoint: transcriptions[0]!,
      request,
      target: offer(perUnit('input_audio_hour', PICO / 2n)),
    })
    ex.observe([{ type: 'text', choice: 0, text: 'Hello' }])
    return ex
  }
  const byProvider = begun()
  byProvider.meter.complete(true)
  t.strictSame([byProvider.usage, byProvider.meter.cost?.total], [{ prompt: 0, completion: 0 }, 0n])
  const byClient = begun()
  byClient.answer.isCut = true
  byClient.meter.complete(true)
  t.match(byClient.usage, { input_audio_hour: 0.5 })
  t.strictSame([byClient.estimated, byClient.meter.cost?.total], [true, 250_000_000n])
})

t.test('a chat client that leaves a model which makes images alone pays for those that it requested', async t => {
  const perImage: Price = { rates: {}, tiers: [], perImage: { default: PICO / 25n } }
  const rows: [says: string, price: Price, quality: string | undefined, nano: bigint, taken?: string[]][] = [
    ['by the image', perImage, undefined, 120_000_000n],
    ['by its tokens', perMillion({ prompt: '1', image_output: '40' }), 'low', 3n * 400n * 40_000n + 1000n],
    ['by its tokens, of no quality', perMillion({ prompt: '1', image_output: '40' }), undefined, 756_001_000n],
    ['of a quality that is not sent', perMillion({ prompt: '1', image_output: '40' }), 'low', 756_001_000n, []],
  ]
  for (const [says, price, quality, nano, taken] of rows) {
    const image_config = { n: 3, ...(quality && { image_quality: quality }) }
    const request = { model: 'm', messages: [{ role: 'user', content: 'cat' }], image_config }
    const signal = new Cancellation()
    const to = {
      ...target({
        model: { output: ['image'] },
        mapping: { maxOutput: 100_000, ...(taken && { parameters: new Set(taken) }) },
      }),
      price,
    }
    const ex = exchange({ request, signal, target: to })
    const held = estimate(ex)!
    ex.outbound.atProvider = true
    signal.abort(errors.aborted())
    ex.meter.complete(true)
    t.match([ex.meter.cost?.total, ex.estimated], [nano, true], says)
    t.ok(costWith(held, held.most) >= nano, 'within what is held')
  }
})

t.test('a caller that leaves pays for what no report names', async t => {
  const hi = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }
  const file = { type: 'file', file: { file_data: 'https://a.example/a' } }
  const read = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: [file] }] }
  const preview: Event = { type: 'partial_image', index: 0, b64: 'AAAA', description: {} as never }
  const none: Event = { type: 'usage', usage: { output_images: 0 } }
  const early: Event[] = [
    { type: 'text', text: 'One', choice: 0 },
    { type: 'usage', usage: { prompt: 1, completion: 1, image_output: 0 } },
  ]
  const drawing: Target = {
    ...target({ model: { output: ['text', 'image'] } }),
    price: perMillion({ prompt: '1', completion: '1', image_output: '100' }),
  }
  const nothing: Event[] = [early[0]!, { type: 'usage', usage: { prompt: 1, completion: 0, image_output: 0 } }]
  const image: Event = { type: 'image', choice: 0, url: 'data:image/png;base64,AAAA' }
  const plainly = { ...drawing, price: perMillion({ prompt: '1', completion: '1' }) }
  const byEach = { ...drawing, price: { ...plainly.price, perImage: { default: PICO / 5n } } }
  const searching = offer({ rates: { prompt: PICO / 1_000_000n, completion: 0n, web_search: PICO / 100n }, tiers: [] })
  const long: Target = {
    ...target({ mapping: { contextLength: 1_000_000 } }),
    price: perMillion({ prompt: '10', completion: '50' }),
  }
  const pages = offer(perUnit('ocr_page', PICO / 250n))
  const page = { document: { type: 'document_url', document_url: 'https://a.example/a' } }
  const draw = { model: 'm', prompt: 'cat', n: 1, quality: 'high', stream: true }
  const byTokens = offer(perMillion({ prompt: '1', image_output: '40' }))
  const byImage = offer({ rates: {}, tiers: [], perImage: { default: PICO / 5n } })
  const rows: [says: string, endpoint: typeof chat, request: object, to: Target, seen: Event[], nano: bigint][] = [
    ['an image, behind a preview', images[0]!, draw, byTokens, [none, preview], 252_001_000n],
    ['the same by the image', images[0]!, draw, byImage, [none, preview], 200_000_000n],
    ['text of a model that makes images, too', chat, hi, drawing, early, 2000n],
    ['text of a provider that reports nothing with each event', chat, hi, drawing, nothing, 2000n],
    ['nothing before any text', chat, hi, drawing, [], 1_000n],
    ['an image that came, and text behind it', chat, hi, drawing, [image, early[0]!], 129_002_000n],
    ['two images since a report', chat, hi, drawing, [...early, image, image], 258_002_000n],
    ['an image that was reported', chat, hi, drawing, [image, ...early], 2000n],
    ['an image and text, at one price', chat, hi, plainly, [image, early[0]!], 1_292_000n],
    ['images and text, by the image', chat, hi, byEach, [image, image, early[0]!], 400_002_000n],
    ['no search that was reported', chat, { ...hi, web_search: true }, searching, [], 1_000n],
    ['the same with a text', chat, { ...hi, web_search: true }, searching, early.slice(0, 1), 1_000n],
    ['a file that its provider fetches', chat, read, long, [], 240_000_000n],
    ['a document', ocr, page, pages, [], 40_000_000n],
    ['a document of ten pages', ocr, page, pages, [{ type: 'usage', usage: { ocr_page: 10 } }], 40_000_000n],
  ]
  for (const [says, endpoint, request, to, seen, nano] of rows) {
    const signal = new Cancellation()
    const ex = exchange({ endpoint, request, signal, target: to })
    if (seen.length > 0) ex.observe(seen)
    ex.outbound.atProvider = true
    signal.abort(errors.aborted())
    ex.meter.complete(true)
    t.equal(ex.meter.cost?.total, nano, says)
  }
})

t.test('reference videos are held for, and charged as their provider reports them', async t => {
  const video = { seconds: 4, size: '1920x1080', audio: true, reference_images: [], reference_audios: [] }
  const by = (...reference_videos: string[]) => ({ ...video, reference_videos }) as unknown as VideoRequest
  const to = { ...target({ model: { output: ['video'] } }), price: perMillion({ completion: '7' }) }
  // A second of 1080p has 48,600 tokens; reference videos have 15 seconds together.
  const rows: [says: string, request: VideoRequest, held: number, reported: number, charged: number][] = [
    ['none', by(), 100_000, 194_400, 194_400],
    ['one', by('https://a.example/a.mp4'), 475_000, 923_400, 923_400],
    [
      'three',
      by('https://a.example/a.mp4', 'https://a.example/b.mp4', 'https://a.example/c.mp4'),
      1_225_000,
      923_400,
      923_400,
    ],
    ['a report beyond all that can be', by(), 100_000, 1_000_000, 100_000],
  ]
  for (const [says, request, held, reported, charged] of rows) {
    const ex = exchange({ endpoint: videos[0]!, request, target: to })
    t.equal(costWith(estimate(ex)!, 0), BigInt(held) * 7_000n, says)
    const params = JSON.parse(JSON.stringify(videoJob.params(request, to)))
    t.equal(videoJob.usage(params, { completion: reported }).completion, charged, says)
  }
})

t.test('an image whose proportions are requested has no price of the size beside them', async t => {
  const cents = (usd: bigint) => (PICO * usd) / 100n
  const perImage = { 'standard/1024x1024': cents(4n), 'standard/1792x1024': cents(8n), '4k': cents(20n) }
  const rows: [says: string, request: object, cents: bigint][] = [
    ['a size', { size: '1024x1024' }, 4n],
    ['another size', { size: '1792x1024' }, 8n],
    ['a size that is not sent', { size: '1024x1024', aspect_ratio: '16:9' }, 20n],
    ['a class, which is sent', { size: '4K', aspect_ratio: '16:9' }, 20n],
  ]
  for (const [says, fields, each] of rows) {
    const request = { model: 'm', prompt: 'cat', n: 1, quality: 'standard', ...fields }
    const ex = exchange({ endpoint: images[0]!, request, target: offer({ rates: {}, tiers: [], perImage }) })
    ex.observe([{ type: 'usage', usage: { output_images: 1 } }])
    t.equal(ex.meter.cost?.total, each * 10_000_000n, says)
    t.equal(costWith(estimate(ex)!, 0), each * 10_000_000n, says)
  }
})

t.test('search units are held for, and believed, as many as long documents may come to', async t => {
  const price = perUnit('request', PICO / 500n)
  const of = (length: number, more: object = {}) => ({
    model: 'm',
    query: 'x'.repeat(100),
    documents: Array.from({ length: 100 }, () => 'x'.repeat(length)),
    ...more,
  })
  const rows: [says: string, request: object, units: number][] = [
    ['short ones', of(1900), 1],
    ['pieces with the query', of(1901), 2],
    ['as much as is read of each', of(100_000), 9],
    ['more of them', of(100_000, { max_tokens_per_doc: 20_000 }), 43],
    ['a query that leaves them little', of(1000, { query: 'x'.repeat(1990) }), 5],
    ['less of them', of(100_000, { max_tokens_per_doc: 10 }), 1],
  ]
  for (const [says, request, units] of rows) {
    const ex = exchange({ endpoint: rerank[0]!, request, target: offer(price) })
    t.equal(costWith(estimate(ex)!, 0), BigInt(units) * 2_000_000n, says)
    ex.observe([{ type: 'usage', usage: { request: 20 * units } }])
    t.equal(ex.meter.cost?.total, BigInt(20 * units) * 2_000_000n, says)
  }
})

t.test('an image that is requested by chat has the price of its class', async t => {
  const cents = (usd: bigint) => (PICO * usd) / 100n
  const perImage = { '1k': cents(4n), '2k': cents(8n), 'high/4k': cents(40n), '4k': cents(20n), default: cents(1n) }
  const rows: [says: string, config: object, cents: bigint][] = [
    ['none', {}, 4n],
    ['a class', { image_size: '4K' }, 20n],
    ['pixels', { image_size: '2048x2048' }, 8n],
    ['a quality', { image_size: '4096x4096', image_quality: 'high' }, 40n],
    ['proportions', { image_size: '2K', aspect_ratio: '16:9' }, 8n],
  ]
  for (const [says, image_config, each] of rows) {
    const request = { model: 'm', messages: [{ role: 'user', content: 'cat' }], image_config }
    const to = { ...target({ model: { output: ['image'] } }), price: { rates: {}, tiers: [], perImage } }
    const ex = exchange({ request, target: to })
    ex.observe([{ type: 'usage', usage: { output_images: 1 } }])
    t.equal(ex.meter.cost?.total, each * 10_000_000n, says)
    t.equal(estimate(ex)?.base, each * 10_000_000n, says)
  }
})

t.test('a quality has its price by either of its names, its own one first', async t => {
  const cents = (usd: bigint) => (PICO * usd) / 100n
  const gpt = { default: cents(4n), high: cents(17n), 'medium/1k': cents(5n) }
  const dalle = { 'standard/1k': cents(4n), 'hd/1k': cents(8n), high: cents(50n) }
  const rows: [says: string, perImage: Record<string, bigint>, quality: string, cents: bigint][] = [
    ['hd is sent as high', gpt, 'hd', 17n],
    ['standard is sent as medium', gpt, 'standard', 5n],
    ['hd by itself', dalle, 'hd', 8n],
    ['another one', gpt, 'low', 4n],
  ]
  for (const [says, perImage, quality, each] of rows) {
    const request = { model: 'm', prompt: 'cat', n: 1, quality }
    const ex = exchange({ endpoint: images[0]!, request, target: offer({ rates: {}, tiers: [], perImage }) })
    t.equal(costWith(estimate(ex)!, 0), each * 10_000_000n, says)
  }
})
