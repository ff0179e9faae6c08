/** Texts of a request that are JSON themselves take memory for what they are parsed to, before they are. */
import t from 'tap'
import { checkResults, checkTexts, measure } from '../../src/codecs/inner-json.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import { Count } from '../../src/json/shape.ts'
import { structureOf } from '../../src/json/structure.ts'
import { errors } from '../../src/lib/error.ts'
import { exchange } from '../core/kit.ts'

const call = (text: string) => ({ id: 'c', type: 'function' as const, function: { name: 'f', arguments: text } })
const asked = (text: string): ChatRequest => ({
  model: 'm',
  messages: [{ role: 'assistant', tool_calls: [call(text)] }],
})
const answered = (content: string): ChatRequest => ({
  model: 'm',
  messages: [{ role: 'tool', tool_call_id: 'c', content }],
})

t.test('a text is counted as its value is', async t => {
  const values: unknown[] = [
    {},
    [],
    [[[]], {}],
    { a: [1, 2, { b: null }], c: 'text, {and} "more": 1' },
    [1, 'a', {}, []],
  ]
  for (const value of values) {
    const count = new Count(7)
    measure(JSON.stringify(value), { values: 1000 }, 0, count)
    const counted = count.structure
    const said = structureOf(value)
    t.ok(counted >= said - 40 && counted <= said + 40, `${JSON.stringify(value)}: ${counted} of ${said}`)
  }
})

t.test('arguments and results take memory, which may not be there', async t => {
  const objects = JSON.stringify({ a: Array.from({ length: 10_000 }, () => ({})) })
  const rows: [says: string, check: typeof checkTexts, request: ChatRequest, least: number][] = [
    ['arguments', checkTexts, asked(objects), 640_000],
    ['arguments that were encoded twice', checkTexts, asked(JSON.stringify(objects)), 640_000],
    ['results', checkTexts, answered(objects), 640_000],
    ['results by themselves', checkResults as typeof checkTexts, answered(objects), 640_000],
    ['a result that is text', checkTexts, answered('[ERROR] {none}'), 0],
  ]
  for (const [says, check, request, least] of rows) {
    let taken = 0
    const ex = exchange({ request })
    Object.assign(ex.input, { memory: { parse: (bytes: number) => (taken += bytes) } })
    check(request, ex.input)
    t.ok(taken >= least && taken < least + 200_000, `${says}: ${taken}`)
    Object.assign(ex.input, {
      memory: {
        parse() {
          throw errors.overloaded()
        },
      },
    })
    if (least > 0) t.throws(() => check(request, ex.input), /overloaded/, says)
  }
})
