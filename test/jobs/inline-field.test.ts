/** Answers in many small pieces: what they cost grows with their bytes, not with the square of their pieces. */
import t from 'tap'
import { InlineField } from '../../src/jobs/inline-field.ts'

t.test('an answer of a million pieces takes as many steps, before its result and behind it', t => {
  const count = 500_000
  const space = Buffer.from(' ')
  const field = new InlineField('film')
  let size = 0
  const push = (text: string) => {
    const bytes = field.push(Buffer.from(text))
    size = field.size
    return bytes.toString()
  }
  for (let pieces = 0; pieces < count; pieces++) {
    field.push(space)
    size = field.size
  }
  t.equal(push(`{"film":"${Buffer.from('abc').toString('base64')}"`), 'abc')
  for (let pieces = 0; pieces < count; pieces++) {
    field.push(space)
    size = field.size
  }
  push('}')
  t.equal(size, 2 * count + '{"film":""}'.length)
  t.same(JSON.parse(field.takeKept().toString()), { film: '' })
  t.end()
})
