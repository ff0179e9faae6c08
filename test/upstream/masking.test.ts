/** A credential that a provider repeats is masked in the results of operations too; files and numbers pass. */
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import { Fetcher } from '../../src/egress/fetcher.ts'
import { Mask, type SentSecrets } from '../../src/secrets/mask.ts'
import { UpstreamJobCaller } from '../../src/upstream/job-caller.ts'
import { AnswerMask } from '../../src/upstream/masking.ts'
import type { Transport } from '../../src/upstream/transport.ts'
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

const sentOf = (secrets: string[]): SentSecrets => ({ secrets, values: [], key: JSON.stringify(secrets) })

t.test('an answer about a job shows neither the credential that was sent nor one of fixed headers', async t => {
  const incoming = { status: 200, header: () => undefined, committed: () => undefined }
  const transport = { send: async () => incoming } as unknown as Transport
  const secret = 'fixed-9f8e7d6c5b4a3928'
  const to = target({
    provider: { headers: { 'x-api-key': secret }, sentSecrets: sentOf([secret]) },
    secret: 'own-1a2b3c4d5e6f7a8b',
  })
  const call = { requestId: 'r', tenant: 'o', signal: new Cancellation(), headMs: 1000, idleMs: 1000 }
  const answer = await new UpstreamJobCaller(transport, new Fetcher([])).own(
    to,
    { method: 'GET', path: '/', body: {} },
    call,
  )
  t.equal(answer.masked?.(`${secret} and own-1a2b3c4d5e6f7a8b`), '*** and ***')
  const open = target({ provider: { auth: { scheme: 'none' } } })
  const plain = await new UpstreamJobCaller(transport, new Fetcher([])).own(
    open,
    { method: 'GET', path: '/', body: {} },
    call,
  )
  t.equal(plain.masked, undefined)
})
