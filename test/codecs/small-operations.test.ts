/** Reading a body of moderations, OCR or typed decisions never keeps the loop (docs/contract.md#shares). */
import t from 'tap'
import { decisions } from '../../src/codecs/decisions.ts'
import { moderations } from '../../src/codecs/moderations.ts'
import { ocr } from '../../src/codecs/ocr.ts'
import { GatewayError } from '../../src/core/error.ts'
import { cpuMs } from '../helpers/cpu.ts'

t.test('a long text, a document or many questions cost little beside parsing them', t => {
  const long = 'y'.repeat(4_000_000)
  const questions = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`q${n}`, { type: 'noul', instructions: 'x' }]))
  const pdf = { type: 'document_url', document_url: `data:application/pdf;base64,${'A'.repeat(16_000_000)}` }
  const rows: [says: string, codec: { decode(body: unknown): object; prepare(): void }, body: object][] = [
    ['instructions', decisions, { state: 'x', questions: { a: { type: 'noul', instructions: long } } }],
    ['questions', decisions, { state: 'x', questions: questions(50_000) }],
    ['input', moderations, { input: long }],
    ['document', ocr, { document: pdf }],
  ]
  for (const [says, codec, more] of rows) {
    codec.prepare()
    const text = JSON.stringify({ model: 'm', ...more })
    const decode = (body: unknown) => {
      try {
        codec.decode(body)
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
      }
    }
    // The cheapest of a few: another one may pay for a garbage collection.
    const cheapest = (run: () => unknown) => Math.min(...[1, 2, 3].map(() => cpuMs(run)))
    const parsing = cheapest(() => JSON.parse(text))
    const body: unknown = JSON.parse(text)
    const reading = cheapest(() => decode(body))
    t.ok(reading < 2 + parsing / 2, `${says}: ${reading} ms to read, ${parsing} ms to parse`)
  }
  t.end()
})
