/** Bodies of images, speech and transcriptions: forms and JSON become one request, and what is wrong is named; files of messages. */
import t from 'tap'
import { aiSdk } from '../../src/codecs/ai-sdk.ts'
import { anthropicMessages } from '../../src/codecs/anthropic-messages.ts'
import { generateContent } from '../../src/codecs/gemini-generate.ts'
import { imageEdits, images } from '../../src/codecs/images.ts'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import { speech } from '../../src/codecs/speech.ts'
import { transcriptions, translations } from '../../src/codecs/transcriptions.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import { aiSdkEndpoints } from '../../src/endpoints/ai-sdk.ts'
import { Form, Upload } from '../../src/lib/body.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { exchange, thrown } from '../core/kit.ts'

/** A call of the AI SDK's protocol. */
const calling = () =>
  exchange({
    endpoint: aiSdkEndpoints.find(({ path }) => path === '/v4/ai/language-model')!,
    headers: { 'ai-language-model-id': 'acme/m' },
  })
const ex = { caller: { principal: { orgId: 'org-1' } }, holds() {} } as unknown as Exchange
type Parts = readonly (readonly [name: string, value: string | Upload])[]

function formOf(parts: Parts): Form {
  const form = new Form()
  for (const [name, value] of parts) {
    if (typeof value === 'string') form.addText(name, value)
    else form.addFile(name, value)
  }
  return form
}

/** The first 33 bytes of a PNG of this size. */
function png(width: number, height: number): Buffer {
  const head = Buffer.alloc(33)
  head.write('\x89PNG\r\n\x1a\n', 'latin1')
  head.write('IHDR', 12, 'latin1')
  head.writeUInt32BE(width, 16)
  head.writeUInt32BE(height, 20)
  return head
}
const file = (bytes: Buffer, type = '', extension = '') => new Upload([bytes], type, extension)
const dataUrl = (bytes: Buffer, type = 'image/png') => `data:${type};base64,${bytes.toString('base64')}`
const square = png(64, 64)
const gif = Buffer.from('GIF89a, and so on')
/** Larger than a file may be, without its bytes. */
const large = Object.assign(file(square), { size: 51 * 1024 * 1024 })

t.test('an edit is one request, whether it comes as a form or as JSON', async t => {
  const common = { model: 'draw', prompt: 'a hat', n: 2, size: '1K', quality: 'low', input_fidelity: 'high' }
  const texts = Object.entries({ ...common, size: '1k', stream: 'true', output_compression: '80', user: 'someone' })
  const parts: Parts = [
    ['image[]', file(square)],
    ...texts.map(([name, value]) => [name, String(value)] as const),
    ['images', 'https://a.example/a.png'],
    ['mask', file(square)],
  ]
  const edit = imageEdits.decode(formOf(parts), ex)
  t.match(edit, { ...common, stream: true, output_compression: 80, user: 'org-1', aspect_ratio: undefined })
  t.match(edit.images, [{ type: 'image/png', file: Upload }, { url: 'https://a.example/a.png' }])
  t.match(edit.mask, { type: 'image/png' })
  const json = imageEdits.decode(
    { ...common, images: [{ image_url: dataUrl(gif) }], mask: { image_url: dataUrl(png(9, 9)) }, stream: null, odd: 1 },
    ex,
  )
  t.match(json, { ...common, stream: false, images: [{ type: 'image/gif' }], mask: { type: 'image/png' } })
  const broken = `${dataUrl(gif).slice(0, -6)}\r\n${dataUrl(gif).slice(-6)}\r\n`
  const { images } = imageEdits.decode({ ...common, images: [{ image_url: broken }] }, ex)
  t.equal(images[0]!.url, dataUrl(gif), 'without line breaks')
  t.match(
    imageEdits.decode(
      formOf([
        ['prompt', 'x'],
        ['image', file(gif)],
      ]),
      ex,
    ),
    { model: 'auto', n: 1 },
  )
})

t.test('of an edit what is wrong is named', async t => {
  const form = (...parts: Parts) => formOf([['prompt', 'x'], ...parts])
  const json = (more: object) => ({ prompt: 'x', images: [{ image_url: dataUrl(square) }], ...more })
  const many = Array.from({ length: 17 }, () => ['image[]', file(square)] as const)
  const rows: [says: string, body: unknown, status: number, code: string, param: string | null][] = [
    ['no image', form(), 400, 'invalid_parameters', 'image'],
    ['17 images', form(...many), 400, 'invalid_parameters', 'image'],
    ['a text as a file', form(['image', file(Buffer.from('plain'))]), 400, 'not_an_image', 'image'],
    [
      'a text in a data URL',
      json({ images: [{ image_url: dataUrl(Buffer.alloc(60, 'x')) }] }),
      400,
      'not_an_image',
      'images[0].image_url',
    ],
    ['more than 50 MiB', form(['image', large]), 413, 'request_too_large', 'image'],
    ['a mask that is no PNG', form(['image', file(square)], ['mask', file(gif)]), 400, 'invalid_parameters', 'mask'],
    [
      'a mask of another size',
      form(['image', file(square)], ['mask', file(png(64, 65))]),
      400,
      'invalid_parameters',
      'mask',
    ],
    ['the same in JSON', json({ mask: { image_url: dataUrl(png(1, 64)) } }), 400, 'invalid_parameters', 'mask'],
    [
      'two masks',
      form(['image', file(square)], ['mask', file(square)], ['mask', file(square)]),
      400,
      'invalid_form_data',
      null,
    ],
    [
      'a mask twice',
      form(['image', file(square)], ['mask', file(square)], ['mask', dataUrl(square)]),
      400,
      'invalid_form_data',
      null,
    ],
    ['a prompt twice', form(['image', file(square)], ['prompt', 'y']), 400, 'invalid_form_data', null],
    ['quality hd', json({ quality: 'hd' }), 400, 'invalid_parameters', 'quality'],
    [
      'an address inside',
      json({ images: [{ image_url: 'https://10.0.0.1/a' }] }),
      400,
      'url_not_allowed',
      'images[0].image_url',
    ],
    ['no scheme', form(['image', 'a.png']), 400, 'url_not_allowed', 'image'],
    ['n in words', form(['image', file(square)], ['n', 'two']), 400, 'invalid_parameters', 'n'],
    ['no fidelity', json({ input_fidelity: 'medium' }), 400, 'invalid_parameters', 'input_fidelity'],
  ]
  for (const [says, body, status, code, param] of rows) {
    const error = thrown(() => imageEdits.decode(body, ex)) as GatewayError
    t.match([error.status, error.code, error.param ?? null], [status, code, param], says)
  }
})

t.test('what an images request may say', async t => {
  const of = (more: object) => images.decode({ prompt: 'x', ...more }, ex)
  t.match(of({ size: 'auto', quality: 'hd', style: null }), { size: undefined, quality: 'hd', style: undefined })
  for (const [more, param] of [
    [{ prompt: 'x'.repeat(32_001) }, 'prompt'],
    [{ n: 0 }, 'n'],
    [{ n: 1.5 }, 'n'],
    [{ size: '64' }, 'size'],
    [{ size: '3K' }, 'size'],
    [{ aspect_ratio: '16x9' }, 'aspect_ratio'],
    [{ quality: 'best' }, 'quality'],
    [{ response_format: 'url' }, 'response_format'],
    [{ style: 'loud' }, 'style'],
    [{ moderation: 'high' }, 'moderation'],
    [{ service_tier: 'fast' }, 'service_tier'],
    [{ background: 'red' }, 'background'],
    [{ output_format: 'gif' }, 'output_format'],
    [{ output_compression: 101 }, 'output_compression'],
    [{ stream: 'yes' }, 'stream'],
    [{ partial_images: 4 }, 'partial_images'],
  ] as const) {
    t.match(
      thrown(() => of(more)),
      { status: 400, code: 'invalid_parameters', param },
      JSON.stringify(more).slice(0, 60),
    )
  }
})

t.test('a text of the wrong form is refused in words', async t => {
  const wrong = (more: object) => thrown(() => images.decode({ prompt: 'x', ...more }, ex))
  const size = 'size: must be a size such as "1024x1024", "auto", "1K", "2K" or "4K"'
  t.match(wrong({ size: '1024*1024' }), { message: size })
  t.match(wrong({ aspect_ratio: '16x9' }), { message: 'aspect_ratio: must be an aspect ratio such as "16:9"' })
})

t.test('characters of speech are code points', async t => {
  const of = (more: object) => speech.decode({ model: 'say', input: 'Hi 👋', ...more })
  t.match(of({}), { characters: 4, stream_format: 'audio', voice: undefined, response_format: undefined })
  t.match(of({ voice: { id: 'anna' }, speed: 0.25 }), { voice: 'anna', speed: 0.25 })
  for (const [more, param] of [
    [{ input: '' }, 'input'],
    [{ input: 'x'.repeat(100_001) }, 'input'],
    [{ speed: 0.2 }, 'speed'],
    [{ speed: 4.1 }, 'speed'],
    [{ instructions: 'x'.repeat(4097) }, 'instructions'],
    [{ voice: '' }, 'voice'],
    [{ voice: '..' }, 'voice'],
    [{ voice: { id: 'a\n' } }, 'voice'],
    [{ voice: '\ud800' }, 'voice'],
    [{ response_format: 'ogg' }, 'response_format'],
    [{ stream_format: 'json' }, 'stream_format'],
    [{ model: undefined }, 'model'],
  ] as const) {
    t.match(
      thrown(() => of(more)),
      { status: 400, param },
      JSON.stringify(more).slice(0, 60),
    )
  }
})

t.test('what a transcription may say', async t => {
  const audio = file(Buffer.from('ID3 audio'))
  const of = (...parts: Parts) => transcriptions.decode(formOf([['model', 'hear'], ['file', audio], ...parts]))
  const list = (name: string, ...items: string[]) => items.map(item => [`${name}[]`, item] as const)
  t.match(of(...list('timestamp_granularities', 'word')), { timestamp_granularities: [] }, 'ignored without its format')
  t.match(of(['response_format', 'verbose_json'], ...list('timestamp_granularities', 'word')), {
    timestamp_granularities: ['word'],
  })
  t.match(of(['chunking_strategy[type]', 'server_vad'], ['chunking_strategy[prefix_padding_ms]', '300']), {
    chunking_strategy: { type: 'server_vad', prefix_padding_ms: 300 },
  })
  const reference = dataUrl(Buffer.from('RIFF audio'), 'audio/wav')
  t.match(
    of(...list('known_speaker_references', reference), ['keyterm', 'a'], ['keyterm', 'b'], ['language', 'pt-BR']),
    {
      known_speaker_references: [reference],
      keyterm: ['a', 'b'],
      language: 'pt-BR',
    },
  )
  t.match(transcriptions.decode({ model: 'hear', url: 'https://a.example/a.mp3' }), { url: 'https://a.example/a.mp3' })
  t.match(
    translations.decode(
      formOf([
        ['model', 'hear'],
        ['file', audio],
        ['stream', 'true'],
      ]),
    ),
    { stream: false },
  )
  const rows: [parts: Parts, param: string][] = [
    [[['url', 'https://a.example/a.mp3']], 'file'],
    [list('known_speaker_references', 'https://a.example/a.wav'), 'known_speaker_references[0]'],
    [list('known_speaker_references', 'data:image/png;base64,AAAA'), 'known_speaker_references[0]'],
    [list('known_speaker_names', 'a', 'b', 'c', 'd', 'e'), 'known_speaker_names'],
    [list('keyterm', 'x'.repeat(101)), 'keyterm[0]'],
    [list('include', 'odd'), 'include[0]'],
    [[['language', 'not a language']], 'language'],
    [[['temperature', '1.1']], 'temperature'],
    [list('timestamp_granularities', 'phrase'), 'timestamp_granularities[0]'],
    ...['srt', 'vtt', 'verbose_json'].map((format): [Parts, string] => [
      [
        ['stream', 'true'],
        ['response_format', format],
      ],
      'stream',
    ]),
  ]
  for (const [parts, param] of rows)
    t.match(
      thrown(() => of(...parts)),
      { status: 400, param },
      JSON.stringify(parts),
    )
})

t.test('a part of a message says once where its file is, so that what is checked is all that is sent', async t => {
  const data = 'data:application/pdf;base64,JVBERi0xLjQK'
  const inside = 'http://169.254.169.254/latest'
  const user = (part: object) => ({ role: 'user', content: [part] })
  const chat = (part: object) => openAiChat.decode({ model: 'm', messages: [user(part)] }, exchange({}))
  const responses = (part: object) => openAiResponses.decode({ model: 'm', input: [user(part)] }, exchange({}))
  const messages = (part: object) =>
    anthropicMessages.decode({ model: 'm', max_tokens: 9, messages: [user(part)] }, exchange({}))
  const gemini = (part: object, role = 'user') => {
    const ex = Object.assign(exchange({}), { params: { model: 'm' } })
    return generateContent.decode({ contents: [{ role, parts: [part] }] }, ex)
  }
  const blob = { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0xLjQK' } }
  const source = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjQK' }
  const part = 'contents[0].parts[0]'
  const rows: [decoding: () => unknown, kept: string, other: string][] = [
    [
      () => chat({ type: 'file', file: { file_data: data, file_id: 'f' } }),
      'file_data',
      'messages[0].content[0].file.file_id',
    ],
    [
      () => responses({ type: 'input_file', file_data: data, file_url: inside }),
      'file_data',
      'input[0].content[0].file_url',
    ],
    [
      () => responses({ type: 'input_file', file_url: 'https://a.example/b', file_id: 'f' }),
      'file_url',
      'input[0].content[0].file_id',
    ],
    [
      () => responses({ type: 'input_file', file_id: 'f', file_url: { a: inside } }),
      'file_url',
      'input[0].content[0].file_id',
    ],
    [
      () => responses({ type: 'input_image', image_url: 'https://a.example/b', file_id: 'f' }),
      'image_url',
      'input[0].content[0].file_id',
    ],
    [
      () => messages({ type: 'document', source: { ...source, url: inside } }),
      'data',
      'messages[0].content[0].source.url',
    ],
    [
      () => messages({ type: 'image', source: { type: 'file', file_id: 'f', url: inside } }),
      'url',
      'messages[0].content[0].source.file_id',
    ],
    [() => gemini({ ...blob, fileData: { fileUri: inside } }), 'inlineData', `${part}.fileData`],
    [
      () => gemini({ functionResponse: { name: 'f' }, fileData: { fileUri: inside } }),
      'functionResponse',
      `${part}.fileData`,
    ],
    [
      () => gemini({ functionCall: { name: 'f' }, fileData: { fileUri: inside } }, 'model'),
      'functionCall',
      `${part}.fileData`,
    ],
  ]
  for (const [decoding, kept, other] of rows) {
    const refused = thrown(decoding) as GatewayError
    t.match(refused, { status: 400, code: 'invalid_parameters', param: other }, other)
    t.match(refused.message, `Keep "${kept}" and leave out "${other.split('.').at(-1)}"`)
  }
  t.match(
    thrown(() => gemini({ thought: true, fileData: { fileUri: inside } }, 'model')),
    { code: 'url_not_allowed' },
  )
  t.match(
    thrown(() => gemini({ fileData: { fileUri: 'https://youtube.127-0-0-1.nip.io/x' } })),
    { code: 'url_not_allowed' },
  )
  for (const none of [null, undefined, '']) {
    t.doesNotThrow(() => responses({ type: 'input_file', file_data: data, file_url: none, file_id: none }))
    t.doesNotThrow(() => messages({ type: 'document', source: { ...source, url: none } }))
  }
})

t.test('a file is a data URL, a public address or base64, and no address of another kind', t => {
  const user = (part: object) => ({ role: 'user', content: [part] })
  const places: [says: string, decoding: (text: string) => unknown][] = [
    [
      'a file of chat',
      file_data =>
        openAiChat.decode({ model: 'm', messages: [user({ type: 'file', file: { file_data } })] }, exchange({})),
    ],
    [
      'audio of chat',
      data => {
        const part = { type: 'input_audio', input_audio: { data, format: 'mp3' } }
        return openAiChat.decode({ model: 'm', messages: [user(part)] }, exchange({}))
      },
    ],
    [
      'a file of Responses',
      file_data =>
        openAiResponses.decode({ model: 'm', input: [user({ type: 'input_file', file_data })] }, exchange({})),
    ],
    [
      'audio of Responses',
      data => {
        const part = { type: 'input_audio', input_audio: { data, format: 'mp3' } }
        return openAiResponses.decode({ model: 'm', input: [user(part)] }, exchange({}))
      },
    ],
    [
      'a file of the AI SDK',
      data => aiSdk.decode({ prompt: [user({ type: 'file', mediaType: 'application/pdf', data })] }, calling()),
    ],
    [
      'audio of the AI SDK',
      data => aiSdk.decode({ prompt: [user({ type: 'file', mediaType: 'audio/mpeg', data })] }, calling()),
    ],
  ]
  const addressAlone: [says: string, decoding: (text: string) => unknown][] = [
    [
      'an address of Responses',
      file_url => openAiResponses.decode({ model: 'm', input: [user({ type: 'input_file', file_url })] }, exchange({})),
    ],
    [
      'an image of chat',
      url =>
        openAiChat.decode({ model: 'm', messages: [user({ type: 'image_url', image_url: { url } })] }, exchange({})),
    ],
    [
      'an image of Responses',
      image_url =>
        openAiResponses.decode({ model: 'm', input: [user({ type: 'input_image', image_url })] }, exchange({})),
    ],
    [
      'a document of Messages',
      url => {
        const document = user({ type: 'document', source: { type: 'url', url } })
        return anthropicMessages.decode({ model: 'm', max_tokens: 9, messages: [document] }, exchange({}))
      },
    ],
  ]
  const others = [
    ...['gs://bucket/x', 's3://bucket/x', 'file:///etc/passwd', 'ftp://a.example/b', '//10.0.0.1/x', 'blob:x'],
    ...[' http://169.254.169.254/', '\nhttp://169.254.169.254/', 'h\n\n\nttp://10.0.0.1/', 'ht\ntp://10.0.0.1/'],
    ...[
      `${'\n'.repeat(300)}http://10.0.0.1/`,
      `h${'\n'.repeat(300)}ttp://10.0.0.1/`,
      '../a b',
      '\0AAAA',
      'http://10.0.0.1',
    ],
  ]
  for (const [says, decoding] of [...places, ...addressAlone]) {
    for (const other of others) {
      const refused = thrown(() => decoding(other)) as GatewayError
      t.match(refused, { status: 400, code: 'url_not_allowed' }, `${says}: ${JSON.stringify(other.slice(0, 40))}`)
      t.match(refused?.message, /use a public http/)
    }
    t.doesNotThrow(() => decoding('https://a.example/b'), says)
  }
  for (const [says, decoding] of places) {
    const long = Buffer.alloc(300, 0xff).toString('base64')
    const lines = (by: string) => long.replace(/.{64}/g, line => line + by)
    const held = ['SUQz', 'JVBERi0xLjQK', '//uQZAAA', '/9j/4AAQ', '-_-_', 'YQ==', long, lines('\n'), lines('\r\n')]
    for (const data of [...held, 'SUQz\n', 'data:application/pdf;base64,JVBERi0xLjQK']) {
      t.doesNotThrow(() => decoding(data), `${says}: ${JSON.stringify(data.slice(0, 40))}`)
    }
  }
  t.end()
})
