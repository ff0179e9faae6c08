/** A credential that a provider repeats is masked in the results of operations too; files and numbers pass. */
import * as fc from 'fast-check'
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import { Mask, PiecewiseMask, type SentSecrets } from '../../src/lib/mask.ts'
import { RecentMasks } from '../../src/lib/masks.ts'
import { UpstreamJobCaller } from '../../src/upstream/job-caller.ts'
import { AnswerMask } from '../../src/upstream/masking.ts'
import type { Transport } from '../../src/upstream/transport.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'
import { target } from '../plugins/wire-kit.ts'

const KEY = 'sk-prod-8f2e91aa77c04d'

const masked = (value: unknown): unknown => {
  const event: Event = { type: 'result', value }
  new AnswerMask(new Mask(KEY)).apply(event)
  return event.value
}

t.test('what a preview of an image says of itself is masked', async t => {
  const description = { background: KEY, output_format: 'png', quality: 'low', size: '1x1' }
  const event: Event = { type: 'partial_image', index: 0, b64: 'AAAA', description }
  new AnswerMask(new Mask(KEY)).apply(event)
  t.match(event, { b64: 'AAAA', description: { background: '***', size: '1x1' } })
})

t.test('texts of results are masked, wherever they stand', async t => {
  const rows: [what: string, value: unknown, clean: unknown][] = [
    [
      'a page of a document',
      { pages: [{ index: 0, markdown: `key: ${KEY}` }] },
      { pages: [{ index: 0, markdown: 'key: ***' }] },
    ],
    [
      'a transcript',
      { text: KEY, words: [{ word: KEY, start: 0 }] },
      { text: '***', words: [{ word: '***', start: 0 }] },
    ],
    [
      'a revised prompt',
      { images: [{ b64: 'AAAA', revised_prompt: `as ${KEY}` }] },
      { images: [{ b64: 'AAAA', revised_prompt: 'as ***' }] },
    ],
    ['the name of a member', { [KEY]: true }, { '***': true }],
  ]
  for (const [what, value, clean] of rows) t.strictSame(masked(value), clean, what)
})

t.test('what holds no credential, and files, are the same values', async t => {
  const file = `${'A'.repeat(40_000)}${KEY}`
  const rows: [what: string, value: object][] = [
    ['numbers', { encoding: 'float', vectors: [[0.1, 0.2]] }],
    ['plain text', { results: [{ index: 1, score: 0.5, text: 'none here' }] }],
    ['bytes', { images: [{ b64: { bytes: Buffer.from(KEY) } }] }],
    ['base64', { images: [{ b64: file }, { image: `data:image/png;base64,${KEY}` }] }],
  ]
  for (const [what, value] of rows) t.equal(masked(value), value, what)
  t.strictSame(masked({ text: `${file} x` }), { text: `${'A'.repeat(40_000)}*** x` }, 'a long text is no file')
})

const sentOf = (secrets: string[], values: string[] = []): SentSecrets => ({
  secrets,
  values,
  key: JSON.stringify([secrets, values]),
})

t.test('values that are no credentials stand in answers, and as wholes in no error and no log', t => {
  const sent = sentOf(
    ['fn-Q8x2Zp71Lm4Rt9Vb'],
    ['https://www.acme.com', 'Acme International Documentation Assistant', 'eu-central-1', '2024-12-01-preview'],
  )
  const mask = new Mask('own-1a2b3c4d5e6f7a8b', sent)
  const answer = 'https://www.wikipedia.org, International law of Documentation, eu-central-1, 2024-12-01-preview'
  t.equal(mask.answer(answer), answer)
  t.equal(new PiecewiseMask(mask).next(answer), answer)
  t.equal(mask.answer('https://www.acme.com and x2Zp71Lm4Rt9'), 'https://www.acme.com and ***')
  const error = 'https://www.wikipedia.org is not https://www.acme.com/x in eu-central-1, International law'
  t.equal(mask.strict(error), 'https://www.wikipedia.org is not ***/x in ***, International law')
  t.equal(mask.strict('of https%3A%2F%2Fwww.acme.com'), 'of ***', 'in every encoding')
  t.equal(mask.log('see https://www.acme.com'), 'see ***')
  t.ok(mask.bytes > new Mask('own-1a2b3c4d5e6f7a8b', sentOf(['fn-Q8x2Zp71Lm4Rt9Vb'])).bytes)
  t.end()
})

t.test('no secret pushes another one out of the mask, however long it is', t => {
  const [own, other, last] = ['own-1a2b3c4d5e6f7a8b', 'fn-Q8x2Zp71Lm4Rt9Vb', 'k-Zw81Vb52Nq73Md64']
  const words = Array.from({ length: 700 }, (_, at) => `instructions${at}`).join(' ')
  const long = drawn(WORD, 4000)
  const masks = [
    new Mask(own, sentOf([other, last], [words])),
    new Mask(`${own} ${long}`, sentOf([other, last])),
    new Mask(own, sentOf([long, other, last])),
    new Mask(`{"private_key":"${long}"}`, sentOf([other, last])),
  ]
  for (const [at, mask] of masks.entries()) {
    t.equal(mask.answer(`${other} ${last}`), '*** ***', String(at))
    t.equal(mask.answer('instructions for your conversation'), 'instructions for your conversation')
  }
  const masked = new RecentMasks({ count: 3, bytes: 32 * MIB })
  t.equal(masked.of(own, sentOf([other]))?.answer(other), '***')
  t.equal(masked.of(own, sentOf([last]))?.answer(`${other} ${last}`), `${other} ***`, 'each has its own')
  t.equal(masked.of('', sentOf([last]))?.answer(last), '***')
  t.equal(masked.of(''), undefined)
  t.end()
})

t.test('an answer about a job shows neither the credential that was sent nor one of fixed headers', async t => {
  const incoming = { status: 200, header: () => undefined, committed: () => undefined }
  const transport = { send: async () => incoming } as unknown as Transport
  const secret = 'fixed-9f8e7d6c5b4a3928'
  const to = target({
    provider: { headers: { 'x-api-key': secret }, sentSecrets: sentOf([secret]) },
    secret: 'own-1a2b3c4d5e6f7a8b',
  })
  const call = { requestId: 'r', tenant: 'o', signal: new Cancellation(), headMs: 1000, idleMs: 1000 }
  const answer = await new UpstreamJobCaller(transport, []).own(to, { method: 'GET', path: '/', body: {} }, call)
  t.equal(answer.masked?.(`${secret} and own-1a2b3c4d5e6f7a8b`), '*** and ***')
  const open = target({ provider: { auth: { scheme: 'none' } } })
  const plain = await new UpstreamJobCaller(transport, []).own(open, { method: 'GET', path: '/', body: {} }, call)
  t.equal(plain.masked, undefined)
})

/** So many groups of five characters that share a place in a table of 65,536, as the mask hashes them. */
function alike(count: number): string[] {
  const codes = Array.from({ length: 26 }, (_, at) => 97 + at).concat(Array.from({ length: 26 }, (_, at) => 65 + at))
  const groups: string[] = []
  for (const a of codes)
    for (const b of codes)
      for (const c of codes)
        for (const d of codes)
          for (const e of codes) {
            const hash = Math.imul((a << 14) ^ (b << 7) ^ c ^ (d << 25) ^ (e << 20), 0x9e3779b1) >>> 16
            if (hash === 1 && groups.push(String.fromCharCode(a, b, c, d, e)) === count) return groups
          }
  return groups
}

t.test('a credential whose groups share a hash takes no longer to be looked for', t => {
  const groups = alike(801)
  const text = `${groups.pop()}xyz`.repeat(65_000)
  const timed = (secret: string) => {
    const mask = new Mask(secret)
    mask.answer(text)
    return () => cpuMs(() => void mask.answer(text))
  }
  const fine = (plain: number, made: number) => made < 5 * plain + 30
  const [plain = 0, made = 0] = leastOf([timed('k'.repeat(40)), timed(groups.join(''))], fine)
  t.ok(fine(plain, made), `${plain} ms, and ${made} ms`)
  t.end()
})

/** `length` characters of `alphabet`, the same in each run; no five of them repeat soon. */
function drawn(alphabet: string, length: number): string {
  let state = 12345
  const next = () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return alphabet[(state >>> 16) % alphabet.length]!
  }
  return Array.from({ length }, next).join('')
}

const WORD = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/'
const SPECIAL = '/:;<>=+?*-,'
const base64 = (before: number) => (text: string) =>
  Buffer.from('x'.repeat(before) + text)
    .toString('base64')
    .slice(4, -4)
const escaped = (spelled: (code: number) => string) => (text: string) =>
  text.replace(/[^\w.~-]/g, char => spelled(char.charCodeAt(0)))
const ENCODINGS: Readonly<Record<string, (text: string) => string>> = {
  plain: text => text,
  ...Object.fromEntries([0, 1, 2].map(before => [`base64 after ${before}`, base64(before)])),
  base64url: text => base64(1)(text).replaceAll('+', '-').replaceAll('/', '_'),
  percent: encodeURIComponent,
  JSON: text => text.replaceAll('/', '\\/'),
  'JSON in hexadecimals': escaped(code => `\\u${code.toString(16).padStart(4, '0')}`),
  HTML: escaped(code => `&#${code};`),
  'HTML in hexadecimals': escaped(code => `&#x${code.toString(16)};`),
}

/** Those that escape nothing. */
const EXACT = Object.keys(ENCODINGS).slice(0, 5)

/** How many of some 300 parts of so many characters the mask lets through. */
function shown(mask: Mask, text: string, length: number): number {
  const step = Math.ceil(text.length / 300)
  const parts = Array.from({ length: Math.ceil(text.length / step) }, (_, at) =>
    text.slice(at * step, at * step + length),
  )
  return parts.filter(part => part.length === length && mask.strict(`(${part})`) === `(${part})`).length
}

t.test('of a long credential any 12 characters are found, in every encoding that there is room for', async t => {
  const all = Object.keys(ENCODINGS)
  const rows: [what: string, secret: string, encodings: string[]][] = [
    ['1,500 characters', drawn(WORD, 1500), all],
    ['1,500 of them after a prefix of their kind', `sk-ant-api03-${drawn(WORD, 1487)}`, all],
    ['400 special ones', drawn(SPECIAL, 400), EXACT],
    ['4,096 characters', drawn(WORD, 4096), EXACT],
    ['4,096 special ones', drawn(SPECIAL, 4096), EXACT],
  ]
  for (const [what, secret, encodings] of rows) {
    const mask = new Mask(secret)
    for (const name of encodings) {
      // What all escapes begin with stands in more places than are compared.
      const length = EXACT.includes(name) ? 12 : 24
      t.equal(shown(mask, ENCODINGS[name]!(secret), length), 0, `${what}, ${name}`)
    }
  }
  const long = drawn(WORD, 4096)
  const mask = new Mask(long)
  for (const name of all) t.equal(shown(mask, ENCODINGS[name]!(long.slice(0, 300)), 24), 0, `the beginning, ${name}`)
})

t.test('one table serves messages, where prefixes count, and answers, where they do not', async t => {
  const mask = new Mask(`sk-ant-api03-${drawn(WORD, 80)}`)
  t.equal(mask.strict('It is sk-ant-api03, it says.'), 'It is ***, it says.')
  const kind = 'Keys begin with sk-ant-api03-, all of them. '
  t.equal(mask.answer(kind), kind)
  t.equal(mask.answer(kind.repeat(3000)), kind.repeat(3000), 'however often it says so')
  t.equal(mask.answer(`It is sk-ant-api03-${drawn(WORD, 80).slice(0, 20)}.`), 'It is ***.')
})

t.test('the mask of no credential takes more than 384 KiB', async t => {
  const rows: [what: string, secret: string, atMost: number][] = [
    ['an ordinary one', `sk-${drawn(WORD, 48)}`, 12],
    ['special characters', drawn(SPECIAL, 4096), 384],
    ['more than are looked for', drawn(SPECIAL, 16_384), 384],
    ['characters of three bytes', drawn('€∆あ', 4096), 384],
    ['short words', drawn(SPECIAL, 4096).replace(/(.{8})./g, '$1 '), 384],
    ['words of 24 characters', drawn(WORD, 4096).replace(/.{12}(.{12})./g, 'sk-ant-api03-$1 '), 384],
    ['short words with colons', drawn(WORD, 4096).replace(/(.{8})./g, '$1:'), 384],
    ['a private key', JSON.stringify({ private_key: drawn(SPECIAL, 60_000).replace(/(.{64})./g, '$1\n') }), 384],
  ]
  for (const [what, secret, atMost] of rows) {
    const { bytes } = new Mask(secret)
    t.ok(bytes <= atMost * 1024, `${what}: ${bytes}`)
  }
})

const MIB = 1024 * 1024
const ordinary = (at: number) => `sk-${at}-${drawn(WORD, 400).slice(at, at + 40)}`
const special = (at: number) => `k${at}:${drawn(SPECIAL, 4080)}`
/** Whether the masks clean a text of this credential. */
const isKnown = (masks: RecentMasks, secret: string) => masks.clean(`(${secret})`) !== `(${secret})`

t.test('of more masks than are kept, the one goes that was used least recently', async t => {
  const masks = new RecentMasks({ count: 3, bytes: 32 * MIB })
  const secrets = [10, 100, 200, 300].map(ordinary) as [string, string, string, string]
  const first = masks.of(secrets[0])
  masks.of(secrets[1])
  masks.of(secrets[2])
  const { bytes } = masks
  t.equal(masks.of(secrets[0]), first, 'a mask is made once')
  t.equal(masks.bytes, bytes)
  masks.of(secrets[3])
  t.strictSame(
    secrets.map(secret => isKnown(masks, secret)),
    [true, false, true, true],
  )
})

t.test('masks of long credentials take no more bytes than all may, and push out no ordinary ones', async t => {
  const masks = new RecentMasks({ count: 64, bytes: 2 * MIB })
  for (let at = 0; at < 8; at++) masks.of(ordinary(at * 40))
  const made = Array.from({ length: 20 }, (_, at) => masks.of(special(at)))
  t.ok(masks.bytes <= 2 * MIB, `${masks.bytes}`)
  t.equal(masks.of(special(19)), made[19])
  t.not(masks.of(special(0)), made[0], 'the oldest was dropped')
  for (let at = 0; at < 8; at++) t.ok(isKnown(masks, ordinary(at * 40)), `ordinary ${at}`)
})

t.test('in any order of use masks stay within their bytes, and the last one is kept', async () => {
  const kinds = [ordinary, special, (at: number) => `${drawn(WORD, 900).slice(at)}`]
  const use = fc.record({ kind: fc.constantFrom(...kinds), at: fc.nat(12) })
  fc.assert(
    fc.property(fc.array(use, { maxLength: 30 }), fc.integer({ min: 1, max: 12 }), (uses, count) => {
      const masks = new RecentMasks({ count, bytes: MIB })
      return uses.every(({ kind, at }) => {
        const mask = masks.of(kind(at))
        return masks.bytes <= MIB && masks.of(kind(at)) === mask
      })
    }),
    { numRuns: runs(100) },
  )
})
