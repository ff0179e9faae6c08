/** The images wires: what each sends and reads, and answers that fail (docs/contributing/edge-cases.md#media M1, M3, M4). */
import t from 'tap'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as bfl } from '../../plugins/bfl.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { imageIn } from '../../plugins/shared/images/base64.ts'
import { plugin as xai } from '../../plugins/xai.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import type { Usage } from '../../src/core/usage.ts'
import type { Json } from '../../src/json/json.ts'
import { Upload } from '../../src/lib/body.ts'
import { chatOverImages, imagesOverChat } from '../../src/operations/images/bridge.ts'
import type {
  Base64Slice,
  GeneratedImages,
  ImageEditRequest,
  ImageRequest,
} from '../../src/operations/images/request.ts'
import { thrown } from '../core/kit.ts'
import { deepFreeze, target } from './wire-kit.ts'

type Wire = Translator<'images' | 'image_edits'>
const wires = new Map<string, Wire>()
for (const plugin of [openai, gemini, xai, bfl, bedrock]) {
  for (const wire of plugin.wires) {
    if (wire.op === 'images' || wire.op === 'image_edits') wires.set(wire.wire, wire as unknown as Wire)
  }
}
const chatWire = openai.wires.find(({ wire }) => wire === 'openai.chat') as Translator | undefined
const bridged = imagesOverChat('images', new Map([['chat', chatWire!]]))!
const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(20, 1)])
const b64 = PNG.toString('base64')
const dataUrl = `data:image/png;base64,${b64}`
const request = (more: Partial<ImageEditRequest> = {}): ImageEditRequest => ({
  model: 'acme-draw',
  prompt: 'a cat',
  n: 1,
  size: undefined,
  aspect_ratio: undefined,
  quality: undefined,
  moderation: undefined,
  service_tier: undefined,
  background: undefined,
  output_format: undefined,
  output_compression: undefined,
  stream: false,
  partial_images: undefined,
  user: undefined,
  images: [],
  mask: undefined,
  input_fidelity: undefined,
  ...more,
})
const offer = (externalId = 'draw-1', more: Target['mapping'] | object = {}): Target =>
  target({ mapping: { externalId, ...more } })
const picture = { url: dataUrl, type: 'image/png' } as const
const inGemini = (config: object, parts: object[] = [{ text: 'a cat' }]) => ({
  contents: [{ role: 'user', parts }],
  generationConfig: { responseModalities: ['IMAGE'], maxOutputTokens: 14_492, ...config },
})
const inlineData = { inlineData: { mimeType: 'image/png', data: b64 } }

t.test('M1 each wire asks in its own words', async t => {
  const gpt = { model: 'gpt-image-1', prompt: 'a cat', n: 1 }
  const dall = { model: 'dall-e-3', prompt: 'a cat', n: 1, response_format: 'b64_json' }
  const grok = { model: 'draw-1', prompt: 'a cat', n: 1, response_format: 'b64_json' }
  const nova = { taskType: 'TEXT_IMAGE', textToImageParams: { text: 'a cat' } }
  const rows: [
    wire: string,
    id: string,
    input: Partial<ImageEditRequest>,
    path: string,
    body: object,
    more?: object,
  ][] = [
    ['openai.images', 'gpt-image-1', {}, '/images/generations', gpt],
    ['openai.images', 'chatgpt-image-latest', {}, '/images/generations', { ...gpt, model: 'chatgpt-image-latest' }],
    [
      'openai.images',
      'gpt-image-1',
      { quality: 'hd', style: 'vivid' },
      '/images/generations',
      { ...gpt, quality: 'high' },
    ],
    ['openai.images', 'gpt-image-1', { quality: 'standard' }, '/images/generations', { ...gpt, quality: 'medium' }],
    [
      'openai.images',
      'dall-e-3',
      { quality: 'hd', style: 'vivid' },
      '/images/generations',
      { ...dall, quality: 'hd', style: 'vivid' },
    ],
    ['openai.images', 'flux', { style: 'vivid' }, '/images/generations', { ...dall, model: 'flux' }],
    [
      'openai.images',
      'gpt-image-1',
      { aspect_ratio: '16:9', size: '1x1' },
      '/images/generations',
      { ...gpt, size: '1536x1024' },
    ],
    ['openai.images', 'gpt-image-1', { aspect_ratio: '2:3' }, '/images/generations', { ...gpt, size: '1024x1536' }],
    [
      'openai.images',
      'gpt-image-2',
      { aspect_ratio: '16:9' },
      '/images/generations',
      { ...gpt, model: 'gpt-image-2', size: '1632x912' },
    ],
    ['openai.images', 'gpt-image-1', { size: '1K' }, '/images/generations', { ...gpt, size: '1024x1024' }],
    [
      'openai.images',
      'dall-e-3',
      { aspect_ratio: '16:9' },
      '/images/generations',
      { ...dall, size: '1792x1024' },
      { sizes: ['1024x1024', '1792x1024'] },
    ],
    [
      'gemini.images',
      'gemini-2.5-flash-image',
      { size: '1920x1080' },
      '/models/gemini-2.5-flash-image:generateContent',
      inGemini({ imageConfig: { aspectRatio: '16:9' } }),
    ],
    [
      'gemini.images',
      'gemini-3-pro-image',
      { size: '2K' },
      '/models/gemini-3-pro-image:generateContent',
      inGemini({ imageConfig: { imageSize: '2K' } }),
    ],
    ['gemini.images', 'g', {}, '/models/g:generateContent', inGemini({})],
    [
      'gemini.image-edits',
      'g',
      { images: [picture] },
      '/models/g:generateContent',
      inGemini({}, [inlineData, { text: 'a cat' }]),
    ],
    [
      'gemini.vertex-images',
      'g',
      { output_format: 'jpeg', output_compression: 80 },
      '/publishers/google/models/g:generateContent',
      inGemini({ imageConfig: { imageOutputOptions: { mimeType: 'image/jpeg', compressionQuality: 80 } } }),
    ],
    [
      'gemini.vertex-image-edits',
      'g',
      { images: [picture] },
      '/publishers/google/models/g:generateContent',
      inGemini({}, [inlineData, { text: 'a cat' }]),
    ],
    [
      'vertex.imagen',
      'imagen',
      { n: 3, size: '2048x2048', output_format: 'png' },
      '/publishers/google/models/imagen:predict',
      {
        instances: [{ prompt: 'a cat' }],
        parameters: {
          sampleCount: 3,
          aspectRatio: '1:1',
          sampleImageSize: '2K',
          outputOptions: { mimeType: 'image/png' },
        },
      },
    ],
    [
      'xai.images',
      'draw-1',
      { n: 2, size: '2048x1152' },
      '/images/generations',
      { ...grok, n: 2, aspect_ratio: '16:9', resolution: '2k' },
    ],
    ['xai.images', 'draw-1', { quality: 'standard' }, '/images/generations', { ...grok, quality: 'medium' }],
    ['xai.images', 'draw-1', { quality: 'auto' }, '/images/generations', grok],
    ['xai.images', 'draw-1', { aspect_ratio: '20:9' }, '/images/generations', { ...grok, aspect_ratio: '20:9' }],
    [
      'xai.image-edits',
      'draw-1',
      { images: [picture] },
      '/images/edits',
      { ...grok, image: { url: dataUrl, type: 'image_url' } },
    ],
    [
      'xai.image-edits',
      'draw-1',
      { images: [{ url: 'https://a.example/a.png' }, picture] },
      '/images/edits',
      {
        ...grok,
        images: [
          { url: 'https://a.example/a.png', type: 'image_url' },
          { url: dataUrl, type: 'image_url' },
        ],
      },
    ],
    ['bfl.images', 'flux-2-pro', { size: '1000x500' }, '/flux-2-pro', { prompt: 'a cat', width: 992, height: 512 }],
    [
      'bfl.images',
      'flux-kontext-pro',
      { size: '1000x500', output_format: 'webp' },
      '/flux-kontext-pro',
      { prompt: 'a cat', aspect_ratio: '16:9', output_format: 'webp' },
    ],
    [
      'bfl.image-edits',
      'flux-2-pro',
      { images: [picture, picture] },
      '/flux-2-pro',
      { prompt: 'a cat', input_image: b64, input_image_2: b64 },
    ],
    [
      'bfl.image-edits',
      'flux-pro-1.0-fill',
      { images: [picture], mask: picture },
      '/flux-pro-1.0-fill',
      { prompt: 'a cat', image: b64, mask: b64 },
    ],
    [
      'bedrock.images',
      'amazon.nova-canvas-v1:0',
      { n: 2, size: '512x768', quality: 'hd' },
      '/model/amazon.nova-canvas-v1%3A0/invoke',
      { ...nova, imageGenerationConfig: { numberOfImages: 2, width: 512, height: 768, quality: 'premium' } },
    ],
    [
      'bedrock.images',
      'stability.sd3',
      { size: '1920x1080' },
      '/model/stability.sd3/invoke',
      { prompt: 'a cat', mode: 'text-to-image', aspect_ratio: '16:9' },
    ],
    [
      'bedrock.image-edits',
      'amazon.nova-canvas-v1:0',
      { images: [picture, picture] },
      '/model/amazon.nova-canvas-v1%3A0/invoke',
      {
        taskType: 'IMAGE_VARIATION',
        imageVariationParams: { images: [b64, b64], text: 'a cat' },
        imageGenerationConfig: { numberOfImages: 1 },
      },
    ],
    [
      'bedrock.image-edits',
      'amazon.nova-canvas-v1:0',
      { images: [picture], mask: picture },
      '/model/amazon.nova-canvas-v1%3A0/invoke',
      {
        taskType: 'INPAINTING',
        inPaintingParams: { image: b64, text: 'a cat', maskImage: b64 },
        imageGenerationConfig: { numberOfImages: 1 },
      },
    ],
    [
      'bedrock.image-edits',
      'us.stability.sd3',
      { images: [picture] },
      '/model/us.stability.sd3/invoke',
      { prompt: 'a cat', mode: 'image-to-image', image: b64, strength: 0.7 },
    ],
  ]
  for (const [wire, id, input, path, body, more] of rows) {
    const sent = wires.get(wire)!.encode(deepFreeze(request(input)), offer(id, more), false)
    t.strictSame([sent.path, sent.body], [path, body], `${wire} ${id} ${JSON.stringify(input).slice(0, 60)}`)
  }
})

t.test('what one model of a wire cannot is refused, and another one may do it', async t => {
  const rows: [wire: string, id: string, input: Partial<ImageEditRequest>, param: string][] = [
    ['bfl.image-edits', 'flux-2-pro', { images: [picture], mask: picture }, 'mask'],
    ['bedrock.image-edits', 'stability.sd3', { images: [picture], mask: picture }, 'mask'],
    ['bedrock.image-edits', 'stability.sd3', { images: [picture, picture] }, 'images'],
    ['bedrock.images', 'amazon.titan-image', { output_format: 'jpeg' }, 'output_format'],
  ]
  for (const [wire, id, input, param] of rows) {
    const refused = thrown(() => wires.get(wire)!.encode(request(input), offer(id), false))
    t.match(refused, { status: 400, param }, wire)
  }
})

t.test('files of a form go out in the pieces in which they came, under names of ours', async t => {
  const file = new Upload([PNG.subarray(0, 20), PNG.subarray(20)], 'text/plain', 'exe')
  const input = request({ images: [{ file, type: 'image/png' }], mask: picture, input_fidelity: 'high' })
  const { files, body } = wires.get('openai.image-edits')!.encode(input, offer('gpt-image-1'), true)
  t.match(body, { stream: true, input_fidelity: 'high' })
  t.strictSame(
    files!.map(({ name, filename, contentType }) => [name, filename, contentType]),
    [
      ['image', 'image-0.png', 'image/png'],
      ['mask', 'mask.png', 'image/png'],
    ],
  )
  t.equal(files![0]!.pieces, file.pieces)
  t.strictSame(wires.get('gemini.image-edits')!.encode(input, offer('g'), false).body.contents, [
    { role: 'user', parts: [inlineData, { text: 'a cat' }] },
  ])
})

t.test('the tier that was served is said, of several requests where it is one', t => {
  const inlineData = { mimeType: 'image/png', data: b64 }
  const made = (serviceTier: string) => ({
    candidates: [{ content: { parts: [{ inlineData }] } }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 9, serviceTier },
  })
  const images = [{ type: 'image_url', image_url: { url: dataUrl } }]
  const said = {
    choices: [{ index: 0, message: { role: 'assistant', content: '', images }, finish_reason: 'stop' }],
    service_tier: 'flex',
  }
  const tiersIn = (events: Event[]) => events.flatMap(event => (event.type === 'tier' ? [event.tier] : []))
  const read = (wire: Wire, answer: object) => {
    const decoder = wire.decoder('unary', offer(), request())
    return [...decoder.frame({ data: JSON.stringify(answer) }), ...decoder.end()]
  }
  const own = wires.get('gemini.images')!
  t.strictSame(tiersIn(read(bridged, said)), ['flex'], 'of a chat')
  const chat = chatOverImages(new Map([['images', own]]))!
  for (const [tiers, joined] of [
    [['flex', 'flex'], ['flex']],
    [['standard', 'flex'], []],
  ] as const) {
    const answers = tiers.map(tier => read(own, made(tier)))
    t.strictSame(
      answers.map(tiersIn),
      tiers.map(tier => [tier === 'flex' ? tier : 'default']),
    )
    for (const { fanOut } of [own, chat]) t.strictSame(tiersIn(fanOut!.join(answers)), joined)
  }
  t.end()
})

t.test('requests for more pictures than a model makes at once are several', async t => {
  const rows: [wire: string, id: string, n: number, parts: number[], maxImageN?: number][] = [
    ['openai.images', 'gpt-image-1', 10, [10]],
    ['openai.images', 'gpt-image-1', 10, [4, 4, 2], 4],
    ['openai.images', 'dall-e-3', 3, [1, 1, 1]],
    ['gemini.images', 'g', 2, [1, 1]],
    ['vertex.imagen', 'i', 6, [4, 2]],
    ['xai.images', 'x', 10, [10]],
    ['bfl.images', 'f', 2, [1, 1]],
    ['bedrock.images', 'amazon.nova-canvas-v1:0', 7, [5, 2]],
    ['bedrock.images', 'stability.sd3', 2, [1, 1]],
  ]
  for (const [wire, id, n, parts, maxImageN] of rows) {
    const split = wires.get(wire)!.fanOut!.split(request({ n }), offer(id, { maxImageN }))
    t.strictSame(
      split.map(part => part.n),
      parts,
      `${wire} ${id}`,
    )
  }
})

t.test('requests that stand for one read its images once', async t => {
  const url = `${dataUrl}${' AAAA'.repeat(60_000)}`
  const chat = chatOverImages(new Map([['image_edits', wires.get('gemini.image-edits')!]]))!
  const content = [
    { type: 'image_url', image_url: { url } },
    { type: 'text', text: 'a cat' },
  ]
  const asked = { model: 'm', messages: [{ role: 'user', content }] }
  const edits = wires.get('gemini.image-edits')!
  const rows: [says: string, wire: Translator, input: object][] = [
    ['edits', edits as unknown as Translator, request({ images: [{ url, type: 'image/png' }], n: 10 })],
    ['chat', chat as unknown as Translator, { ...asked, image_config: { n: 10 } }],
  ]
  for (const [says, wire, input] of rows) {
    const calls = t.capture(Buffer, 'from', Buffer.from)
    const parts = wire.fanOut!.split(input as ChatRequest, offer())
    for (const part of parts) wire.encode(part, offer(), false)
    const read = calls().filter(({ args: [text] }) => String(text).length > 100_000)
    calls.restore()
    t.strictSame([parts.length, read.length], [10, 1], says)
  }
})

/** The events of a whole answer. */
function decode(wire: string, answer: unknown, input: Partial<ImageRequest> = {}): Event[] {
  const decoder = wires.get(wire)!.decoder('unary', offer(), request(input))
  const data = JSON.stringify(answer)
  return [...decoder.frame({ data, bytes: Buffer.from(data) }), ...decoder.end()]
}
const textOf = (image: string | Base64Slice) => (typeof image === 'string' ? image : image.text())
function picturesIn(events: readonly Event[]): string[] {
  const result = events.find(({ type }) => type === 'result') as { value: GeneratedImages } | undefined
  return result?.value.images.map(({ b64 }) => textOf(b64)) ?? []
}

const large = Buffer.concat([PNG, Buffer.alloc(9000, 7)]).toString('base64')
const candidate = (...parts: object[]) => ({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })
const meta = {
  promptTokenCount: 30,
  promptTokensDetails: [
    { modality: 'TEXT', tokenCount: 4 },
    { modality: 'IMAGE', tokenCount: 26 },
  ],
  candidatesTokenCount: 100,
  thoughtsTokenCount: 7,
}
const counted = {
  prompt: 30,
  completion: 107,
  internal_reasoning: 7,
  image_input: 26,
  image_output: 100,
  output_images: 1,
}

t.test('M3, M4 each wire reads its pictures and what was counted', async t => {
  const xaiUsage = {
    data: [
      { b64_json: b64, respect_moderation: true },
      { b64_json: b64, respect_moderation: false },
    ],
  }
  const rows: [wire: string, answer: object, pictures: string[], usage: object, n?: number][] = [
    ['openai.images', { data: [{ b64_json: large }, { b64_json: b64 }] }, [large, b64], { output_images: 2 }, 2],
    ['openai.images', { data: [{ b64_json: b64 }, { b64_json: b64 }] }, [b64], { output_images: 1 }],
    [
      'openai.images',
      { data: [{ b64_json: `${dataUrl.slice(0, 40)}\n${dataUrl.slice(40)}` }] },
      [b64],
      { output_images: 1 },
    ],
    ['openai.images', { data: [{ url: dataUrl }] }, [b64], { output_images: 1 }],
    ['openai.images', { note: { b64_json: '@0' }, data: [{ b64_json: large }] }, [large], { output_images: 1 }],
    [
      'gemini.images',
      { ...candidate({ thought: true, ...inlineData }, { text: 'x' }, inlineData), usageMetadata: meta },
      [b64],
      counted,
    ],
    [
      'gemini.vertex-images',
      candidate({ inlineData: { mimeType: 'image/png', data: large } }),
      [large],
      { output_images: 1 },
    ],
    [
      'vertex.imagen',
      { predictions: [{ bytesBase64Encoded: b64 }, { raiFilteredReason: 'no' }] },
      [b64],
      { output_images: 1 },
      2,
    ],
    ['xai.images', xaiUsage, [b64], { output_images: 1 }, 2],
    ['bedrock.images', { images: [b64, b64] }, [b64, b64], { output_images: 2 }, 2],
    ['bedrock.images', { images: [b64], seeds: [1], finish_reasons: [null] }, [b64], { output_images: 1 }],
  ]
  for (const [wire, answer, pictures, usage, n = 1] of rows) {
    const events = decode(wire, answer, { n })
    const says = `${wire} ${JSON.stringify(answer).slice(0, 60)}`
    t.strictSame(picturesIn(events), pictures, says)
    const [told] = events
    t.strictSame(told?.type === 'usage' && told.usage, usage, says)
  }
})

t.test('M3, M4 what holds no picture is refused, or the failure of its provider', async t => {
  const svg = Buffer.from('<svg onload="alert(1)"/>').toString('base64')
  const rows: [wire: string, answer: unknown, status: number, code: string, failover: boolean][] = [
    ['openai.images', {}, 502, 'upstream_invalid_response', true],
    ['openai.images', { data: [] }, 502, 'upstream_invalid_response', true],
    ['openai.images', { data: [{ b64_json: svg }] }, 502, 'upstream_invalid_response', true],
    ['openai.images', { data: [{ b64_json: `${large}"` }] }, 502, 'upstream_invalid_response', true],
    ['openai.images', { error: { message: 'overloaded', code: 503 } }, 503, 'upstream_overloaded', true],
    ['xai.images', { data: [{ b64_json: b64, respect_moderation: false }] }, 400, 'content_filter', false],
    ['gemini.images', { promptFeedback: { blockReason: 'SAFETY' } }, 400, 'content_filter', false],
    ['gemini.images', { candidates: [{ finishReason: 'IMAGE_SAFETY' }] }, 400, 'content_filter', false],
    ['gemini.images', { candidates: [{ finishReason: 'PROHIBITED_CONTENT' }] }, 400, 'content_filter', false],
    ['gemini.images', { candidates: [{ finishReason: 'IMAGE_RECITATION' }] }, 400, 'content_filter', false],
    ['gemini.images', { candidates: [{ finishReason: 'NO_IMAGE' }] }, 502, 'upstream_invalid_response', true],
    ['gemini.images', { candidates: [{ finishReason: 'IMAGE_OTHER' }] }, 502, 'upstream_invalid_response', true],
    [
      'gemini.images',
      { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'x' } },
      503,
      'upstream_rate_limited',
      true,
    ],
    ['vertex.imagen', { predictions: [{ raiFilteredReason: 'no' }] }, 400, 'content_filter', false],
    ['vertex.imagen', {}, 502, 'upstream_invalid_response', true],
    ['bedrock.images', { status: 'Request Moderated', details: { x: 1 } }, 400, 'content_filter', false],
    ['bedrock.images', { images: [b64], finish_reasons: ['Filter reason: prompt'] }, 400, 'content_filter', false],
    ['bedrock.images', { images: [] }, 502, 'upstream_invalid_response', true],
    ['bfl.images', { id: '1' }, 502, 'upstream_invalid_response', true],
    ['bfl.images', { detail: [{ msg: 'wrong' }] }, 500, 'upstream_error', true],
  ]
  for (const [wire, answer, status, code, failover] of rows) {
    const [event, ...more] = decode(wire, answer)
    const says = `${wire} ${JSON.stringify(answer).slice(0, 60)}`
    const error = event?.type === 'error' ? event.error : undefined
    t.strictSame([error?.code, error?.failover], [code, failover], says)
    if (status !== 500) t.equal(error?.status, status, says)
    t.strictSame(more, [], says)
  }
})

t.test('where a model may write beside pictures, a limit is sent that leaves these whole', t => {
  const plain = { parameters: new Set(['max_tokens']) }
  const rows: [says: string, input: Partial<ImageRequest>, mapping: object, limit: number, least: number][] = [
    ['a picture of no quality', {}, {}, 14_492, 6_300],
    ['of a model that takes no quality', { quality: 'max' }, plain, 10_192, 2_000],
    ['three of it, for less money', { n: 3, max_output: 6500 }, plain, 6500, 6_000],
    ['a large one', { quality: 'max' }, {}, 33_192, 25_000],
    ['a small one, where nothing is smaller', { quality: 'low' }, {}, 10_192, 2_000],
    ['three', { n: 3 }, {}, 27_092, 18_900],
    ['what the model may write at most', { quality: 'max' }, { maxOutput: 32_768 }, 32_768, 25_000],
    ['which is less than a picture', {}, { maxOutput: 4096 }, 4096, 4096],
    ['less money', { max_output: 7000 }, {}, 7000, 6_300],
    ['too little of it', { max_output: 10 }, {}, 6_300, 6_300],
    ['more of it', { max_output: 100_000 }, {}, 14_492, 6_300],
  ]
  for (const [says, input, mapping, limit, least] of rows) {
    for (const wire of [bridged, wires.get('gemini.images')!]) {
      const { body, output } = wire.encode(request(input), offer('g', mapping), false)
      t.strictSame(output, { limit, least, whole: true }, says)
      const { max_tokens: sent, generationConfig: config } = body as { max_tokens?: number; generationConfig?: Json }
      t.equal(sent ?? config?.maxOutputTokens, limit, says)
    }
  }
  const chat = chatOverImages(new Map([['images', wires.get('gemini.images')!]]))!
  const asked: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'a cat' }], max_tokens: 7000 }
  t.equal(chat.encode(asked, offer('g'), false).output?.limit, 7000, 'of a chat')
  t.end()
})

t.test('what is written in the place of a picture is charged, as reported or as it came', async t => {
  const report = { promptTokenCount: 30, candidatesTokenCount: 100, thoughtsTokenCount: 7 }
  const essay = 'An essay. '.repeat(40)
  const thoughts = { ...report, candidatesTokenCount: 0 }
  const message = (content: string, more: object = {}) => ({ message: { role: 'assistant', content, ...more } })
  const chat = (content: string, reason: string, more?: object) => ({
    choices: [{ index: 0, finish_reason: reason, ...message(content, more) }],
  })
  const tokens = { prompt_tokens: 30, completion_tokens: 107 }
  const filtered = [{ finishReason: 'IMAGE_SAFETY' }]
  const url = { url: dataUrl }
  type Expected = [code: string | undefined, usage: Usage, estimated: boolean]
  const lacks = 'upstream_invalid_response'
  const rows: [wire: string, answer: object, expected: Expected][] = [
    ['gemini.images', { ...candidate({ text: essay }), usageMetadata: report }, [lacks, { completion: 107 }, false]],
    ['gemini.images', candidate({ text: essay }), [lacks, { completion: 100 }, true]],
    ['gemini.images', { candidates: filtered, usageMetadata: thoughts }, ['content_filter', { completion: 7 }, false]],
    [
      'gemini.images',
      candidate({ text: essay }, inlineData),
      [undefined, { completion: 1390, image_output: 1290 }, true],
    ],
    ['chat', { ...chat(essay, 'stop'), usage: tokens }, [lacks, { completion: 107 }, false]],
    ['chat', chat(essay, 'length'), [lacks, { completion: 100 }, true]],
    ['chat', chat(essay, 'content_filter'), ['content_filter', { completion: 100 }, true]],
    ['chat', chat(essay, 'stop', { images: [{ image_url: url }] }), [undefined, { completion: 1390 }, true]],
  ]
  for (const [wire, answer, [code, usage, estimated]] of rows) {
    const input = request()
    const data = JSON.stringify(answer)
    const translator = wire === 'chat' ? bridged : wires.get(wire)!
    const decoder = translator.decoder('unary', offer(), input)
    const events = [...decoder.frame({ data, bytes: Buffer.from(data) }), ...decoder.end()]
    const [told, last] = events
    const says = `${wire} ${data.slice(0, 80)} ${data.length}`
    t.match(told, { type: 'usage', usage }, says)
    t.equal(told?.type === 'usage' && told.estimated === true, estimated, says)
    const error = last?.type === 'error' ? last.error : undefined
    t.strictSame(
      [error?.code, error?.billed, error?.failover],
      code ? [code, true, false] : [undefined, undefined, undefined],
    )
  }
})

t.test('a picture at an address is fetched, one after the other', async t => {
  const url = 'https://cdn.example/1.png'
  const decoder = wires.get('openai.images')!.decoder('unary', offer(), request({ n: 2 }))
  const data = JSON.stringify({ data: [{ url }, { url: `${url}?2`, revised_prompt: 'r' }] })
  t.strictSame(decoder.frame({ data }), [{ type: 'fetch', url }])
  t.strictSame([decoder.done, decoder.end()], [false, []])
  t.strictSame(decoder.frame({ data: '', bytes: PNG }), [{ type: 'fetch', url: `${url}?2` }])
  t.strictSame(picturesIn(decoder.frame({ data: '', bytes: PNG })), [b64, b64])
  t.ok(decoder.done)
  const other = wires.get('openai.images')!.decoder('unary', offer(), request())
  other.frame({ data })
  const large = Buffer.concat([PNG, Buffer.alloc(1024 * 1024, 'image')])
  t.strictSame(picturesIn(other.frame({ data: '', bytes: large })), [large.toString('base64')])
  const wrong = wires.get('openai.images')!.decoder('unary', offer(), request())
  wrong.frame({ data })
  t.match(wrong.frame({ data: '', bytes: Buffer.from('<html>') }), [{ type: 'error', error: { status: 502 } }])
})

t.test('a job is waited for with more and more time, until it has ended', async t => {
  const job = () => {
    const decoder = wires.get('bfl.images')!.decoder('unary', offer(), request())
    return (answer: object) => decoder.frame({ data: JSON.stringify(answer) })
  }
  const poll = 'https://api.example/v1/get_result'
  const one = job()
  t.strictSame(one({ id: '7', polling_url: poll }), [{ type: 'wait', url: `${poll}?id=7`, afterMs: 500 }])
  t.match(one({ status: 'Pending' }), [{ type: 'wait', url: `${poll}?id=7`, afterMs: 650 }])
  for (let times = 0; times < 10; times++) one({ state: 'Pending' })
  t.match(one({ status: 'Pending' }), [{ afterMs: 3000 }])
  t.strictSame(one({ status: 'Ready', result: { sample: 'https://cdn.example/a.png' } }), [
    { type: 'fetch', url: 'https://cdn.example/a.png' },
  ])
  const ends: [answer: object, code: string][] = [
    [{ status: 'Request Moderated' }, 'content_filter'],
    [{ state: 'Content Moderated' }, 'content_filter'],
    [{ status: 'Error' }, 'upstream_invalid_response'],
    [{ status: 'Task not found' }, 'upstream_invalid_response'],
    [{ status: 'Ready', result: {} }, 'upstream_invalid_response'],
    [{}, 'upstream_invalid_response'],
  ]
  for (const [answer, code] of ends) {
    const other = job()
    other({ id: '7', polling_url: `${poll}?id=7` })
    t.match(other(answer), [{ type: 'error', error: { code } }], JSON.stringify(answer))
  }
})

t.test('base64 is read wherever white space and padding stand', async t => {
  const long = 'A'.repeat(1024 * 1024 - 1)
  const read = (value: string) => {
    try {
      return imageIn(value)
    } catch {
      return undefined
    }
  }
  for (const end of ['', 'AAA', '=', '==', '=\n=', '=\n', 'A=', '\r\n ', '===', '=A', '==A', '=\nA', '.', '\n.'])
    for (const begin of ['', 'data:image/png;base64,', `${long}\n`, long, `${long.slice(1)} `]) {
      const bare = (begin + end).replace('data:image/png;base64,', '').replace(/\s/g, '')
      const expected = /^A+={0,2}$/.test(bare) ? bare : undefined
      t.equal(read(begin + end), expected, `${begin.slice(0, 4)} ${begin.length} ${JSON.stringify(end)}`)
    }
})
