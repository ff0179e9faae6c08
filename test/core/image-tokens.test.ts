/** What the images of a prompt come to: their sizes by their heads, and tokens by the formulas of vendors. */
import t from 'tap'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import { type ImageTokens, imageTokensOf } from '../../src/core/image-tokens.ts'
import { chat } from '../../src/endpoints/chat.ts'
import { costWith, estimate } from '../../src/filters/billing/estimate.ts'
import { imageDimensions } from '../../src/lib/image-dimensions.ts'
import { mediaOf } from '../../src/operations/chat/media.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'
import { target } from '../plugins/wire-kit.ts'
import { exchange } from './kit.ts'
import { pages, pdf } from './pdf-kit.ts'
import { flat } from './prices.ts'

const filled = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(64)])
const latin = (text: string) => Buffer.from(text, 'latin1')

function png(width: number, height: number, chunk = 'IHDR', ...chunks: Buffer[]): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  const body = [latin(`\x89PNG\r\n\x1a\n\0\0\0\x0d${chunk}`), head, Buffer.alloc(9), ...chunks, latin('\0\0\0\x40IDAT')]
  return filled(Buffer.concat(body))
}

function webp(kind: string, ...bytes: number[]): Buffer {
  return filled(Buffer.concat([latin(`RIFF\0\0\0\0WEBP${kind}\0\0\0\0`), Buffer.from(bytes)]))
}

const chunk = (type: string, length: number) => {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(length, 0)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, Buffer.alloc(length + 4)])
}
const segment = (marker: number, bytes: Buffer) => {
  const head = Buffer.from([0xff, marker, 0, 0])
  head.writeUInt16BE(bytes.length + 2, 2)
  return Buffer.concat([head, bytes])
}
const metadata = (length: number) => segment(0xe1, Buffer.alloc(length, 0xff))
/** 1280 x 720. */
const frame = (marker = 0xc0) => segment(marker, Buffer.from([8, 0x02, 0xd0, 0x05, 0x00, 3, 1, 0x22, 0]))
const jpeg = (...pieces: Buffer[]) => filled(Buffer.concat([Buffer.from([0xff, 0xd8]), ...pieces]))

/** By its screen and first frame, with so many bits of a colour. */
function gif(width: number, height: number, frame: number[], bits = 0, ...blocks: Buffer[]): Buffer {
  const screen = Buffer.from([0, 0, 0, 0, bits > 0 ? 0x80 | (bits - 1) : 0, 0, 0])
  screen.writeUInt16LE(width, 0)
  screen.writeUInt16LE(height, 2)
  const image = Buffer.alloc(10, ',')
  for (const [at, number] of frame.entries()) image.writeUInt16LE(number, 1 + 2 * at)
  return Buffer.concat([latin('GIF89a'), screen, Buffer.alloc(bits > 0 ? 3 << bits : 0), ...blocks, image])
}
const control = latin('!\xf9\x04\0\0\0\0\0')
const loop = latin('!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0')

const HD = { width: 1280, height: 720 }
/** 1279 and 719 in 14 bits each. */
const LOSSLESS = [0x2f, ...[0xff, 0xc4, 0xb3, 0x00]]

t.test('the size of an image is what its head says', async t => {
  const rows: [says: string, head: Buffer, size: object | undefined][] = [
    ['PNG', png(1280, 720), HD],
    ['a PNG whose first chunk is another', png(1280, 720, 'CgBI'), undefined],
    ['a PNG without width', png(0, 720), undefined],
    ['a PNG with a profile', png(1280, 720, 'IHDR', chunk('iCCP', 2000)), HD],
    ['a PNG with a second header', png(1280, 720, 'IHDR', chunk('tEXt', 9), chunk('IHDR', 13)), undefined],
    ['lossy WebP', webp('VP8 ', 0, 0, 0, 0x9d, 0x01, 0x2a, 0x00, 0x45, 0xd0, 0x02), HD],
    ['lossless WebP', webp('VP8L', ...LOSSLESS), HD],
    ['extended WebP', webp('VP8X', 0, 0, 0, 0, 0xff, 0x04, 0, 0xcf, 0x02, 0), HD],
    ['another WebP', webp('VP9 ', 1, 1, 1, 1), undefined],
    ['JPEG', jpeg(frame()), HD],
    ['a progressive JPEG with metadata and tables', jpeg(metadata(3000), segment(0xc4, latin('x')), frame(0xc2)), HD],
    ['a JPEG with fill bytes', jpeg(Buffer.from([0xff, 0xff, 0xff]), frame()), undefined],
    ['a JPEG with a marker that has no length', jpeg(Buffer.from([0xff, 0xd0]), frame()), undefined],
    ['a JPEG with a marker of no meaning', jpeg(Buffer.from([0xff, 0x00, 0, 9]), frame()), undefined],
    ['a JPEG whose scan begins', jpeg(segment(0xda, latin('x')), frame()), undefined],
    ['a JPEG that ends', jpeg(Buffer.from([0xff, 0xd9]), frame()), undefined],
    ['a JPEG whose segment has no length', jpeg(Buffer.from([0xff, 0xe0, 0, 0]), frame()), undefined],
    ['a JPEG with other bytes between', jpeg(latin('x'), frame()), undefined],
    ['a PNG with very many chunks', png(1280, 720, 'IHDR', ...Array(300).fill(chunk('tEXt', 0))), undefined],
    ['a JPEG with very many segments', jpeg(...Array(300).fill(metadata(0)), frame()), undefined],
    ['GIF', gif(1280, 720, [0, 0, 1280, 720]), HD],
    ['a GIF of the older version', latin(gif(1280, 720, [0, 0, 9, 9]).toString('latin1').replace('9a', '7a')), HD],
    ['a GIF whose frame reaches beyond its screen', gif(160, 720, [1000, 9, 280, 9]), HD],
    ['a GIF without a screen', gif(0, 0, [0, 0, 1280, 720]), HD],
    ['a GIF with colours and extensions', gif(1280, 9, [0, 700, 9, 20], 8, control, loop), HD],
    ['a GIF with another block', gif(1280, 720, [0, 0, 9, 9], 0, latin('x')), undefined],
    ['a GIF without a frame', gif(1280, 720, [0, 0, 9, 9], 0, latin(';')), undefined],
    ['a GIF with very many extensions', gif(1280, 720, [0, 0, 9, 9], 0, ...Array(300).fill(control)), undefined],
    ['a GIF with very many blocks', gif(1280, 720, [0, 0, 9, 9], 0, latin(`!\xfe${'\x01x'.repeat(300)}\0`)), undefined],
    ['a GIF that is cut in a block', gif(1280, 720, [0, 0, 9, 9], 0, control).subarray(0, 17), undefined],
    ['a GIF that is cut in a frame', gif(1280, 720, [0, 0, 9, 9]).subarray(0, 22), undefined],
    ['a GIF of no version', filled(latin('GIF88a\x80\0\x80\0')), undefined],
    ['too few bytes', png(1280, 720).subarray(0, 40), undefined],
  ]
  for (const [says, head, size] of rows) t.strictSame(imageDimensions(head), size, says)
})

const asked = (...urls: string[]) =>
  [
    { role: 'user', content: urls.map(url => ({ type: 'image_url', image_url: { url } })) },
  ] as unknown as ChatRequest['messages']
const dataUrl = (bytes: Buffer, type = 'image/png') => `data:${type};base64,${bytes.toString('base64')}`

t.test('a size counts only where all decoders read the same bytes', async t => {
  const good = dataUrl(png(1280, 720))
  const rows: [says: string, url: string, size: object | undefined][] = [
    ['plain base64', good, HD],
    ['base64 in lines', good.replace(/.{40}/g, '$&\r\n'), HD],
    ['a JPEG behind 3 kB of metadata', dataUrl(jpeg(metadata(3000), frame())), HD],
    ['behind 60 kB', dataUrl(Buffer.concat([jpeg(metadata(60_000), frame()), Buffer.alloc(40_000)])), HD],
    ['behind more than is looked at', dataUrl(jpeg(metadata(65_000), metadata(3000), frame())), undefined],
    ['a character that some decoders pass over', good.replace('base64,iVBO', 'base64,iVB.O'), undefined],
    ['padding that ends it for some', good.replace('base64,iVBO', 'base64,=iVBO'), undefined],
    ['a PNG behind 60 kB of metadata', dataUrl(png(1280, 720, 'IHDR', chunk('iCCP', 60_000))), HD],
    ['behind 200 kB', dataUrl(png(1280, 720, 'IHDR', chunk('iCCP', 200_000))), undefined],
    ['an address', 'https://a.example/a.png', undefined],
  ]
  for (const [says, url, size] of rows) t.strictSame(mediaOf(asked(url)).images, [size], says)
})

t.test('of many images that do not begin with their size, some are looked through', t => {
  const late = dataUrl(jpeg(metadata(60_000), frame()))
  const early = dataUrl(png(1280, 720))
  const sizes = mediaOf(asked(...Array(200).fill(late), early)).images
  t.equal(sizes.filter(size => size !== undefined).length, 128 + 1, '8 MiB, and those that need few')
  t.strictSame([sizes[0], sizes[127], sizes[128], sizes[200]], [HD, HD, undefined, HD])
  const none = dataUrl(jpeg(...Array(256).fill(metadata(255))))
  const messages = asked(...Array(255).fill(none))
  for (let times = 0; times < 5; times++) mediaOf([...messages])
  const [took = 0] = leastOf([() => cpuMs(() => void mediaOf([...messages]))], ms => ms < 90)
  t.ok(took < 90, `${took} ms of CPU`)
  t.end()
})

const TILES: ImageTokens = { patchSize: 512, perPatch: 5667, base: 2833, max: 48_169 }
const PATCHES: ImageTokens = { patchSize: 32, perPatch: 1.62, base: 0, max: 2489 }

t.test('an image has the tokens that its vendor publishes, and the most where its size is not known', async t => {
  const rows: [says: string, width: number, height: number, formula: ImageTokens | undefined, tokens: number][] = [
    ['no formula', 8000, 8000, undefined, 1600],
    ['one tile', 512, 512, TILES, 8500],
    ['four tiles', 1024, 1024, TILES, 25_501],
    ['the most tiles', 8000, 8000, TILES, 48_169],
    ['patches, of which one is cut', 1024, 1025, PATCHES, Math.ceil(32 * 33 * 1.62)],
    ['the most patches', 4000, 3000, PATCHES, 2489],
  ]
  for (const [says, width, height, formula, tokens] of rows) {
    t.equal(imageTokensOf([{ width, height }], formula), tokens, says)
    const both = tokens + (formula?.max ?? 1600)
    t.equal(imageTokensOf([{ width, height }, undefined], formula), both, `${says}, and one of unknown size`)
  }
})

t.test('pages of a document count as images of the model, beyond what is usual', async t => {
  const file_data = `data:application/pdf;base64,${pdf(pages(3)).toString('base64')}`
  const messages = [{ role: 'user', content: [{ type: 'file', file: { file_data } }] }]
  const tokens = (imageTokens?: ImageTokens) => {
    const ex = exchange({ endpoint: chat, request: { model: 'm', messages } })
    ex.target = target({ model: imageTokens ? { imageTokens } : {} })
    return ex.promptUsage.prompt
  }
  t.equal(tokens(), 6000)
  t.equal(tokens(TILES), 6000 + 3 * (48_169 - 1600))
  t.equal(tokens({ patchSize: 1000, perPatch: 1, base: 0, max: 9 }), 6000, 'no fewer')
})

t.test('money is held for images as their model counts them', async t => {
  const held = (url: string, imageTokens?: ImageTokens) => {
    const ex = exchange({ endpoint: chat, request: { model: 'm', max_tokens: 1, messages: asked(url) } })
    const price = flat({ prompt: '1000', completion: '0' })
    ex.target = { ...target({ model: imageTokens ? { imageTokens } : {} }), price }
    return costWith(estimate(ex)!, 0)
  }
  const address = 'https://a.example/a.png'
  t.equal(held(address) - held(dataUrl(png(2048, 768))), 0n, 'alike without a formula')
  t.equal(held(address, TILES) - held(address), BigInt(48_169 - 1600) * 1_000_000n)
  t.equal(held(dataUrl(png(2048, 768)), TILES), held(address, TILES))
  t.equal(held(address, TILES) - held(dataUrl(png(300, 300)), TILES), BigInt(48_169 - 8500) * 1_000_000n)
})
