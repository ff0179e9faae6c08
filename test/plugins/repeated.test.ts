/** Events that repeat are read without parsing them, and say what they would say if they were parsed. */
import fc from 'fast-check'
import t from 'tap'
import { EventTemplate } from '../../plugins/shared/event-template.ts'

const shapes: readonly [name: string, field: string, event: (text: string, id: number, pad: string) => string][] = [
  [
    'OpenAI',
    'content',
    (text, id) =>
      `{"id":"c-${id}","choices":[{"index":0,"delta":{"content":${JSON.stringify(text)}},"finish_reason":null}]}`,
  ],
  [
    'Anthropic',
    'text',
    (text, id, pad) =>
      `{"type":"content_block_delta","index":${id},"delta":{"type":"text_delta","text":${JSON.stringify(text)}}${pad}}`,
  ],
]

const textIn = (data: string): string => {
  const { delta, choices } = JSON.parse(data)
  return delta ? delta.text : choices[0].delta.content
}

for (const [name, field, event] of shapes) {
  t.test(`whatever texts, blocks and padding follow one another, ${name} is read as it would be parsed`, async t => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('"', '\\', '\\"}}', '"}}', '}', ' ', '\n', ''),
    )
    const pad = fc.nat({ max: 3 }).map(count => ' '.repeat(count))
    fc.assert(
      fc.property(fc.array(fc.tuple(text, fc.nat({ max: 1 }), pad), { maxLength: 12 }), events => {
        const repeated = new EventTemplate(field)
        for (const given of events) {
          const data = event(...given)
          const read = repeated.textOf(data)
          if (read === undefined) repeated.learn(data, given[0])
          else if (read !== textIn(data)) return false
        }
        return true
      }),
    )
    const repeated = new EventTemplate(field)
    repeated.learn(event('One', 0, '  '), 'One')
    for (const [at, padding] of ['', ' ', '     '].entries()) {
      t.equal(repeated.textOf(event(`${at} } ]`, 0, padding)), `${at} } ]`)
    }
    t.equal(repeated.textOf(event('two', 1, '')), undefined, 'another block')
  })
}

t.test('what is not the event that was learned is left to the parser', async t => {
  const repeated = new EventTemplate('text')
  t.equal(repeated.textOf('{"text":"a"}'), undefined)
  t.notOk(repeated.learn('{"text":"a","more":{"text":"a"}}', 'a'), 'which of the two it is')
  t.notOk(repeated.learn('{"text": "a"}', 'a'), 'written in another way')
  t.ok(repeated.learn('{"delta":{"text":"a"}}', 'a'))
  for (const other of ['', '"', '{"delta":{"text":"', '{"delta":{"text":"b"}', '{"delta":{"text":"b"}}}', '"}}']) {
    t.equal(repeated.textOf(other), undefined, other)
  }
  for (const more of ['{"delta":{"text":"b","x":"c"}}', '{"delta":{"text":"b"},"x":"c"}']) {
    t.equal(repeated.textOf(more), undefined, more)
  }
})
