/** What the images of a prompt come to: their sizes by their heads, and tokens by the formulas of vendors. */
import t from 'tap'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import { type ImageTokens, imageTokensOf } from '../../src/core/media.ts'
import { chat } from '../../src/endpoints/inference.ts'
import { imageDimensions } from '../../src/media/image.ts'
import { Base64File, MEDIA_BUDGET } from '../../src/media/source.ts'
import { costWith, estimate } from '../../src/metering/estimate.ts'
import { measureMedia, mediaOf } from '../../src/operations/chat/media.ts'
import { pages, pdf } from '../media/pdf-kit.ts'
import { target } from '../plugins/wire-kit.ts'
import { exchange } from './kit.ts'
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

function gif(width: number, height: number): Buffer {
  const screen = Buffer.alloc(7)
  screen.writeUInt16LE(width, 0)
  screen.writeUInt16LE(height, 2)
  return filled(Buffer.concat([latin('GIF89a'), screen]))
}

const HD = { width: 1280, height: 720 }
/** 1279 and 719 in 14 bits each. */
const LOSSLESS = [0x2f, ...[0xff, 0xc4, 0xb3, 0x00]]

t.test('the size of an image is what its head says', async t => {
  const rows: [says: string, head: Buffer, size: object | undefined][] = [
    ['PNG', png(1280, 720), HD],
    ['a PNG whose first chunk is another', png(1280, 720, 'CgBI'), undefined],
    ['a PNG without width', png(0, 720), undefined],
    ['a PNG with a profile', png(1280, 720, 'IHDR', chunk('iCCP', 2000)), HD],
    ['lossy WebP', webp('VP8 ', 0, 0, 0, 0x9d, 0x01, 0x2a, 0x00, 0x45, 0xd0, 0x02), HD],
    ['lossless WebP', webp('VP8L', ...LOSSLESS), HD],
    ['extended WebP', webp('VP8X', 0, 0, 0, 0, 0xff, 0x04, 0, 0xcf, 0x02, 0), HD],
    ['another WebP', webp('VP9 ', 1, 1, 1, 1), undefined],
    ['JPEG', jpeg(metadata(20), frame()), HD],
    ['a progressive JPEG with metadata and tables', jpeg(metadata(3000), segment(0xc4, latin('x')), frame(0xc2)), HD],
    ['a JPEG without a frame', jpeg(metadata(20)), undefined],
    ['GIF', gif(1280, 720), HD],
    ['a GIF of the older version', latin(gif(1280, 720).toString('latin1').replace('9a', '7a')), HD],
    ['a GIF without a screen', gif(0, 0), undefined],
    ['a GIF of no version', filled(latin('GIF88a\x80\0\x80\0')), undefined],
    ['too few bytes', png(1280, 720).subarray(0, 20), undefined],
    ['a drawing called GIF', filled(latin('GIF88a<svg width="1280" height="720"></svg>')), undefined],
  ]
  for (const [says, head, size] of rows) {
    const budget = { ...MEDIA_BUDGET }
    t.strictSame(await imageDimensions(new Base64File(head.toString('base64')), budget), size, says)
  }
})

const asked = (...urls: string[]) =>
  [
    { role: 'user', content: urls.map(url => ({ type: 'image_url', image_url: { url } })) },
  ] as unknown as ChatRequest['messages']
const dataUrl = (bytes: Buffer, type = 'image/png') => `data:${type};base64,${bytes.toString('base64')}`
async function sizesOf(...urls: string[]) {
  const messages = asked(...urls)
  await measureMedia(messages)
  return mediaOf(messages).images
}

t.test('a size is looked for in the first bytes', async t => {
  const good = dataUrl(png(1280, 720))
  const rows: [says: string, url: string, size: object | undefined][] = [
    ['plain base64', good, HD],
    ['base64 in lines', good.replace(/.{40}/g, '$&\r\n'), HD],
    ['a JPEG behind 3 kB of metadata', dataUrl(jpeg(metadata(3000), frame())), HD],
    ['behind 60 kB', dataUrl(Buffer.concat([jpeg(metadata(60_000), frame()), Buffer.alloc(40_000)])), HD],
    ['behind more than is looked at', dataUrl(jpeg(metadata(65_000), metadata(3000), frame())), undefined],
    ['an address', 'https://a.example/a.png', undefined],
  ]
  for (const [says, url, size] of rows) t.strictSame(await sizesOf(url), [size], says)
})

t.test('of many images that do not begin with their size, some are looked through', async t => {
  const late = dataUrl(jpeg(metadata(60_000), frame()))
  const early = dataUrl(png(1280, 720))
  const sizes = await sizesOf(...Array(250).fill(late))
  t.ok(sizes[100], 'a hundred at least')
  t.equal(sizes[249], undefined)
  t.equal((await sizesOf(...Array(128).fill(early))).filter(size => size !== undefined).length, 128)
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
  const messages = [{ role: 'user', content: [{ type: 'file', file: { file_data } }] }] as ChatRequest['messages']
  await measureMedia(messages)
  const tokens = (imageTokens?: ImageTokens) => {
    const ex = exchange({ endpoint: chat, request: { model: 'm', messages } })
    ex.target = target({ model: imageTokens ? { imageTokens } : {} })
    return ex.prompt.usage.prompt
  }
  t.equal(tokens(), 6000)
  t.equal(tokens(TILES), 6000 + 3 * (48_169 - 1600))
  t.equal(tokens({ patchSize: 1000, perPatch: 1, base: 0, max: 9 }), 6000, 'no fewer')
})

t.test('money is held for images as their model counts them', async t => {
  const held = async (url: string, imageTokens?: ImageTokens) => {
    const messages = asked(url)
    await measureMedia(messages)
    const ex = exchange({ endpoint: chat, request: { model: 'm', max_tokens: 1, messages } })
    const price = flat({ prompt: '1000', completion: '0' })
    ex.target = { ...target({ model: imageTokens ? { imageTokens } : {} }), price }
    return costWith(estimate(ex)!, 0)
  }
  const address = 'https://a.example/a.png'
  t.equal((await held(address)) - (await held(dataUrl(png(2048, 768)))), 0n, 'alike without a formula')
  t.equal((await held(address, TILES)) - (await held(address)), BigInt(48_169 - 1600) * 1_000_000n)
  t.equal(await held(dataUrl(png(2048, 768)), TILES), await held(address, TILES))
  t.equal(
    (await held(address, TILES)) - (await held(dataUrl(png(300, 300)), TILES)),
    BigInt(48_169 - 8500) * 1_000_000n,
  )
})
