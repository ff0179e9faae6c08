/** A credential that a provider repeats is masked in the results of operations too; files and numbers pass. */
import t from 'tap'
import type { Event } from '../../src/core/event.ts'
import { Mask } from '../../src/lib/mask.ts'
import { AnswerMask } from '../../src/upstream/masking.ts'

const KEY = 'sk-prod-8f2e91aa77c04d'

const masked = (value: unknown): unknown => {
  const event: Event = { type: 'result', value }
  new AnswerMask(new Mask(KEY)).apply(event)
  return event.value
}

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
