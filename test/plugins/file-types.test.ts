/** What is held for a file is what each wire sends: both have one answer to what it is. */
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as cohere } from '../../plugins/cohere.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { plugin as responses } from '../../plugins/openai-responses.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Media } from '../../src/core/media.ts'
import type { Translator } from '../../src/core/translator.ts'
import { measureMedia, mediaOf } from '../../src/operations/chat/media.ts'
import { parseFile } from '../../src/wire/wire.ts'
import { encodeWith, type Json, offer } from './golden-kit.ts'

const PAGES = 1000
const MATROSKA = Buffer.from('1a45dfa3', 'hex')
const latin = (text: string) => Buffer.from(text, 'latin1')
const pdf = latin(
  `%PDF-1.7
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count ${PAGES}>>endobj
3 0 obj<</Type/Page/Parent 2 0 R>>endobj
trailer<</Root 1 0 R>>
${' '.repeat(2000)}`,
)
const box = (name: string, body: Buffer) => {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(body.length + 8, 0)
  head.write(name, 4, 'latin1')
  return Buffer.concat([head, body])
}
/** Says that it lasts two seconds. */
const header = box('mvhd', Buffer.from(`${'00'.repeat(12)}000003e8000007d0${'00'.repeat(80)}`, 'hex'))
const png = latin('\x89PNG\r\n\x1a\n\0\0\0\rIHDR')
const mp3 = Buffer.from(`fffb90c0${'00'.repeat(413)}`.repeat(50), 'hex')

const files: Record<string, Buffer> = {
  pdf,
  'pdf behind other bytes': Buffer.concat([Buffer.alloc(500, 0x80), pdf]),
  'pdf behind the head of a film': Buffer.concat([box('ftyp', Buffer.alloc(0)), header, pdf]),
  'pdf in an image': Buffer.concat([png, Buffer.alloc(100), pdf]),
  'pdf in a sound': Buffer.concat([latin('ID3\x03\0\0\0\0\x10\0'), pdf]),
  image: Buffer.concat([png, Buffer.alloc(4000)]),
  sound: mp3,
  film: Buffer.concat([box('ftyp', latin('qt  ')), Buffer.alloc(8000)]),
  'film of a known length': Buffer.concat([box('ftyp', latin('isom')), header]),
  archive: latin(`PK\x03\x04${'\0'.repeat(4000)}`),
  text: latin('Hello. '.repeat(500)),
  'text about PDFs': latin(`Such a file begins with %PDF-1.7. ${'Hello. '.repeat(500)}`),
  'text that begins like a sound': latin(`ID3 is a tag. ${'Hello. '.repeat(500)}`),
}
const EXCEL = 'application/vnd.ms-excel'
const types = [
  '',
  'image/png',
  'text/plain',
  'text/x',
  'application/json',
  'application/pdf',
  'application/x-a',
].concat(['application/octet-stream', 'audio/mp3', 'video/mp4', 'application/msword', 'application/xml', EXCEL])
const names = [undefined, 'a.pdf', 'a.png', 'a.txt', 'a.docx', 'a.py']

const wires = [anthropic, bedrock, cohere, gemini, mistral, openai, responses].map(
  ({ wires }) => wires[0] as unknown as Translator<'chat'>,
)
async function measured(part: object): Promise<Media> {
  const messages = asked(part) as unknown as ChatRequest['messages']
  await measureMedia(messages)
  return mediaOf(messages)
}

const asked = (part: object) => [{ role: 'user', content: [{ type: 'text', text: 'a' }, part] }]

type Kind = 'image' | 'text' | 'pdf' | 'other'
function kindOf(type: string): Kind {
  if (type === 'application/pdf' || type === 'pdf') return 'pdf'
  if (/^(?:text\/.*|application\/json|csv|html|txt|md)$/.test(type)) return 'text'
  return type.startsWith('image/') ? 'image' : 'other'
}

/** What the body says that its file is; undefined for one that is refused. */
function sentAs(wire: Translator<'chat'>, part: object): Kind | undefined {
  let body: string
  try {
    body = JSON.stringify(encodeWith(wire, { messages: asked(part) }, offer()).body)
  } catch {
    return undefined
  }
  const [, format] = /"document":\{"format":"(\w+)"/.exec(body) ?? []
  const [, type] = /"(?:mimeType|media_type)":"([^"]+)"/.exec(body) ?? /"data:([^;,"]*)/.exec(body) ?? []
  if (format !== undefined) return kindOf(format)
  if (/"image":\{/.test(body)) return 'image'
  if (/"(?:audio|video)":\{/.test(body)) return 'other'
  return kindOf(type ?? 'text/plain')
}

/** Whether as much is held as it may come to. */
function isHeld(bytes: Buffer, kind: Kind, { images, fileTokens, pages = 0 }: Media): boolean {
  // What is no text by its bytes has as many as other files of its size, though a wire sends it as text.
  if (kind === 'text') return fileTokens >= Math.ceil(bytes.length / 16)
  if (bytes.includes('/Count')) return pages >= PAGES && (kind !== 'image' || images.length === 1)
  return kind === 'image' ? images.length === 1 : fileTokens > 0
}

t.test('whatever a file is declared as and called, what is sent of it is held for', async t => {
  let sent = 0
  for (const [says, bytes] of Object.entries(files)) {
    for (const declared of types) {
      for (const filename of names) {
        const file_data = `data:${declared};base64,${bytes.toString('base64')}`
        const part = { type: 'file', file: { file_data, ...(filename !== undefined && { filename }) } }
        const media = await measured(part)
        for (const wire of wires) {
          const kind = sentAs(wire, part)
          if (kind === undefined) continue
          sent++
          const held = isHeld(bytes, kind, media)
          if (!held) t.fail(`${wire.wire}: ${says}, declared as "${declared}", called ${filename}, sent as ${kind}`)
        }
      }
    }
  }
  t.ok(sent > 2000, `${sent}`)
})

t.test('images that are something else are held for as that, too', async t => {
  for (const [says, bytes] of Object.entries(files)) {
    if (says.startsWith('text')) continue
    for (const type of ['image/png', 'application/octet-stream', '']) {
      const part = { type: 'image_url', image_url: { url: `data:${type};base64,${bytes.toString('base64')}` } }
      const media = await measured(part)
      t.equal(media.images.length, 1, says)
      t.equal(media.fileTokens + (media.unmeasuredTokens ?? 0) > 0, says !== 'image', says)
    }
  }
})

t.test('a file is what its bytes prove, else as it is declared, else as it is called', async t => {
  const rows: [says: string, bytes: Buffer, declared: string, name: string | undefined, type: string][] = [
    ['a PDF called an image', pdf, 'image/png', 'a.png', 'application/pdf'],
    ['a PDF called text', pdf, 'text/x', 'a.txt', 'application/pdf'],
    ['a PDF behind other bytes', files['pdf behind other bytes']!, 'image/png', undefined, 'application/pdf'],
    [
      'a PDF that another head stands before',
      files['pdf in a sound']!,
      'application/pdf',
      undefined,
      'application/pdf',
    ],
    ['a sound called an image', mp3, 'image/png', 'a.png', 'audio/mp3'],
    ['a film', files.film!, 'image/png', 'a.png', 'video/quicktime'],
    ['the sound of a film', files['film of a known length']!, 'audio/mp4', undefined, 'audio/mp4'],
    ['an archive', files.archive!, 'text/plain', undefined, 'application/zip'],
    ['a document in an archive', files.archive!, 'application/vnd.a', undefined, 'application/vnd.a'],
    ['text', files.text!, 'text/markdown', 'a.pdf', 'text/markdown'],
    ['text with a known word', files['text that begins like a sound']!, 'text/plain', undefined, 'text/plain'],
    ['text in 16 bits', Buffer.from('\ufeffHello', 'utf16le'), 'text/plain', undefined, 'text/plain'],
    ['a name', Buffer.alloc(9), 'application/octet-stream', 'a.CSV', 'text/csv'],
    ['a name of one form of several', MATROSKA, 'application/octet-stream', 'a.mkv', 'video/x-matroska'],
    ['the form without a name', MATROSKA, 'application/octet-stream', undefined, 'video/webm'],
    ['a script without a type', files.text!, 'application/octet-stream', 'a.py', 'text/plain'],
    ['one with a name of another type', files.text!, 'application/octet-stream', 'a.pdf', 'text/plain'],
    ['a table without a type', files.text!, 'application/octet-stream', 'a.csv', 'text/csv'],
    ['a table called a workbook', files.text!, EXCEL, 'a.csv', 'text/csv'],
    ['the same without a name', files.text!, EXCEL, undefined, 'text/csv'],
    ['a workbook', latin('\xd0\xcf\x11\xe0'), EXCEL, 'a.csv', EXCEL],
    ['XML', files.text!, 'application/xml', 'a.xml', 'text/plain'],
    ['a form of JSON', files.text!, 'application/ld+json', undefined, 'text/plain'],
    ['text that begins like an archive', latin('PKG=1'), 'application/octet-stream', undefined, 'text/plain'],
    ['an image whose first bytes are letters', latin('GIF89aaaaa'), 'application/octet-stream', undefined, 'image/gif'],
    ['letters of three bytes', Buffer.from(`a${'漢'.repeat(400)}`), 'application/xml', undefined, 'text/plain'],
    ['letters of four', Buffer.from(`ab${'😀'.repeat(400)}`), 'application/xml', undefined, 'text/plain'],
    ['a letter that is cut', Buffer.from('漢').subarray(0, 2), 'application/xml', undefined, 'application/xml'],
    ['text of another encoding', latin('caf\xe9'), 'application/xml', undefined, 'application/xml'],
    ['text with a zero', latin('a\0b'), 'application/xml', undefined, 'application/xml'],
    ['text about PDFs', files['text about PDFs']!, 'application/octet-stream', undefined, 'application/pdf'],
    ['text called a document', files.text!, 'application/msword', undefined, 'application/msword'],
    ['no bytes', latin(''), 'application/octet-stream', undefined, 'application/octet-stream'],
    ['no name', Buffer.alloc(9), 'application/octet-stream', undefined, 'application/octet-stream'],
    ['an unknown form', Buffer.alloc(9), 'image/bmp', 'a.pdf', 'image/bmp'],
  ]
  for (const [says, bytes, declared, name, type] of rows) {
    t.equal(parseFile(`data:${declared};base64,${bytes.toString('base64')}`, name)?.mime, type, says)
  }
})

t.test('text is sent as text, whatever its client calls it', async t => {
  const [messages, converse] = [wires[0]!, wires[1]!]
  const rows: [declared: string, filename: string | undefined, format: string][] = [
    ['application/json', 'a.json', 'txt'],
    ['application/octet-stream', 'a.py', 'txt'],
    ['application/octet-stream', undefined, 'txt'],
    ['application/javascript', 'a.js', 'txt'],
    [EXCEL, 'a.csv', 'csv'],
  ]
  for (const [declared, filename, format] of rows) {
    const file_data = `data:${declared};base64,${latin('a,b').toString('base64')}`
    const part = { type: 'file', file: { file_data, ...(filename !== undefined && { filename }) } }
    const body = (wire: Translator<'chat'>) => encodeWith(wire, { messages: asked(part) }, offer()).body
    const [{ content: blocks }] = body(messages).messages as [{ content: Json[] }]
    t.strictSame(blocks[1]!.source, { type: 'text', media_type: 'text/plain', data: 'a,b' }, declared)
    const [{ content }] = body(converse).messages as [{ content: Json[] }]
    t.equal((content[1]!.document as { format: string }).format, format, declared)
    const media = await measured(part)
    t.strictSame([media.fileTokens, media.unmeasuredTokens], [1, 0], declared)
  }
})

t.test('data in another form than base64 reaches a provider as what is held for', async t => {
  const base64 = pdf.toString('base64')
  const text = latin('a'.repeat(4000)).toString('base64')
  const rows: [says: string, url: string, isHeld: (media: Media) => boolean, hasPdf: boolean][] = [
    ['text', `data:text/plain,${encodeURIComponent(pdf.toString('latin1'))}`, ({ pages }) => pages === PAGES, true],
    ['base64 to some', `data:text/plain;base64;a=1,${base64}`, media => media.fileTokens === base64.length / 4, false],
    ['behind space', `data:text/plain;base64,${' '.repeat(9000)}${base64}`, ({ pages }) => pages === PAGES, true],
    ['behind its end', `data:text/plain;base64,YQ==${base64}`, media => media.fileTokens > 0, false],
    ['another alphabet', `data:text/plain;base64,--__${text}`, media => media.unmeasuredTokens === 0, false],
  ]
  const sent = (part: object) => {
    const { body } = encodeWith(openai.wires[0] as unknown as Translator<'chat'>, { messages: asked(part) }, offer())
    return (body.messages as { content: Json[] }[])[0]!.content[1]!
  }
  for (const [says, file_data, isHeld, hasPdf] of rows) {
    const part = { type: 'file', file: { file_data } }
    t.ok(isHeld(await measured(part)), says)
    const [, data = ''] = /^data:[^;,]+;base64,(.*)$/.exec((sent(part).file as { file_data: string }).file_data) ?? []
    t.equal(Buffer.from(data, 'base64').includes('%PDF-'), hasPdf, says)
  }
  const audio = (data: string) => ({ type: 'input_audio', input_audio: { data, format: 'wav' } })
  t.strictSame(sent(audio('data:audio/wav,RIFF')), audio('data:audio/wav;base64,UklGRg=='))
  t.strictSame(sent(audio('data:;base64,UklGRg==')), audio('data:;base64,UklGRg=='), 'as it came')
})
