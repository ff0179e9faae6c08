/** References to items of stored responses: what a short body can make of them is bounded. */
import t from 'tap'
import { stored } from '../../src/codecs/responses/stored.ts'
import type { StoredTurn } from '../../src/core/stored-responses.ts'

const answer = 'a'.repeat(20)
const id = `resp_${answer}`
const reference = (item: string) => ({ type: 'item_reference', id: item })
const itemsOf = (input: readonly unknown[], turn: Omit<StoredTurn, 'id'>) =>
  stored.continued({ input }, { chain: [], missing: undefined, others: new Map([[id, { id, ...turn }]]) }).input

t.test('many references to one response look at each of its items once', t => {
  let looks = 0
  const items = Array.from({ length: 1000 }, (_, at) => ({
    role: 'user',
    content: String(at),
    get id() {
      looks++
      return undefined
    },
  }))
  const references = items.map((_, at) => reference(`msg_${answer}_in${at}`))
  t.match(itemsOf(references, { input: items, output: [] }), [
    { content: [{ text: '0' }] },
    { content: [{ text: '1' }] },
  ])
  t.ok(looks <= 10_000, `${looks} looks`)
  t.end()
})

t.test('an item is referred to once: a short body would become a request of any size', t => {
  const output = [{ type: 'message', id: `msg_${answer}_0`, content: [] }]
  const input = [{ role: 'user', content: 'Hi' }]
  for (const item of [`msg_${answer}_0`, `msg_${answer}_in0`]) {
    t.match(itemsOf([reference(item)], { input, output }), [{ id: item }])
    t.throws(() => itemsOf([reference(item), { role: 'user', content: 'On' }, reference(item)], { input, output }), {
      status: 400,
      param: 'input[2].id',
      message: 'input[2].id: another reference names the same item; refer to it once',
    })
  }
  const unknown = [reference(`msg_${answer}_7`), reference(`msg_${answer}_7`)]
  t.strictSame(itemsOf(unknown, { input, output }), unknown, 'what is not there is left to the decoding')
  t.end()
})
