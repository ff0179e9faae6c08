/** Forms as the bodies that they stand for: lists, objects, numbers, and what cannot be told. */
import t from 'tap'
import { formBody } from '../../src/codecs/form.ts'
import { s } from '../../src/core/schema.ts'
import { Form, Upload } from '../../src/lib/body.ts'
import { thrown } from '../core/kit.ts'

const schema = s.open({
  model: s.string(),
  n: s.maybe(s.integer()),
  temperature: s.optional(s.number()),
  stream: s.optional(s.boolean()),
  words: s.optional(s.array(s.string())),
  sizes: s.maybe(s.array(s.integer())),
  strategy: s.optional(s.either(s.enum('auto'), s.open({ type: s.string() }))),
})
const formOf = (...parts: [name: string, text: string][]): Form => {
  const form = new Form()
  for (const [name, text] of parts) form.addText(name, text)
  return form
}

t.test('texts become what their schema says', async t => {
  const rows: [parts: [string, string][], fields: object][] = [
    [[['model', '4']], { model: '4' }],
    [
      [
        ['n', '2'],
        ['temperature', '0.5'],
        ['stream', 'true'],
      ],
      { n: 2, temperature: 0.5, stream: true },
    ],
    [
      [
        ['words[]', 'a'],
        ['words[]', '2'],
      ],
      { words: ['a', '2'] },
    ],
    [
      [
        ['words', 'a'],
        ['words[]', 'b'],
        ['sizes', '1'],
      ],
      { words: ['a', 'b'], sizes: [1] },
    ],
    [[['strategy', 'auto']], { strategy: 'auto' }],
    [[['strategy', '{"type":"x","n":1}']], { strategy: { type: 'x', n: 1 } }],
    [
      [
        ['strategy[type]', 'x'],
        ['strategy[n]', '1.5'],
        ['strategy[on]', 'false'],
      ],
      { strategy: { type: 'x', n: 1.5, on: false } },
    ],
    [
      [
        ['n', 'two'],
        ['stream', 'yes'],
        ['strategy', '{'],
      ],
      { n: 'two', stream: 'yes', strategy: '{' },
    ],
    [
      [
        ['unknown', 'x'],
        ['__proto__', 'x'],
      ],
      JSON.parse('{"unknown":"x","__proto__":"x"}') as object,
    ],
    [[['strategy[__proto__]', 'x']], { strategy: JSON.parse('{"__proto__":"x"}') as object }],
  ]
  for (const [parts, fields] of rows) {
    const got = formBody(formOf(...parts), schema).fields
    t.equal(JSON.stringify(got), JSON.stringify(fields), JSON.stringify(parts))
    t.equal((got as { polluted?: unknown }).polluted, undefined)
  }
})

t.test('a scalar that stands twice is refused', async t => {
  for (const parts of [
    [
      ['model', 'a'],
      ['model', 'b'],
    ],
    [['model[]', 'a']],
    [
      ['strategy[type]', 'a'],
      ['strategy[type]', 'b'],
    ],
    [
      ['model', 'a'],
      ['model[type]', 'b'],
    ],
    [
      ['strategy[type]', 'a'],
      ['strategy', 'auto'],
    ],
    [
      ['words[b]', 'a'],
      ['words[]', 'b'],
    ],
    [
      ['words[]', 'a'],
      ['words[b]', 'b'],
    ],
    [
      ['words[]', 'a'],
      ['words[4294967294]', 'b'],
    ],
  ] as [string, string][][]) {
    t.match(
      thrown(() => formBody(formOf(...parts), schema)),
      { status: 400, code: 'invalid_form_data' },
    )
  }
})

t.test('JSON in the texts of a form counts as that of a body', async t => {
  const many = s.open({ images: s.array(s.either(s.string(), s.open({}))) })
  const images = (...texts: string[]) => formOf(...texts.map((text): [string, string] => ['images[]', text]))
  const list = (values: number) => `{"a":[${'1,'.repeat(values)}1]}`
  const rows: [says: string, form: Form, code: string][] = [
    ['values of all texts', images(list(20_001), list(20_000)), 'too_many_elements'],
    ['levels', images(`{"a":${'['.repeat(130)}${']'.repeat(130)}}`), 'too_deep'],
    ['a name', images(`{"${'x'.repeat(20_000)}":1}`), 'too_many_elements'],
    ['characters of all texts', images(...Array(5).fill(`{"a":"${'x'.repeat(900_000)}"}`)), 'invalid_form_data'],
  ]
  for (const [says, form, code] of rows) {
    t.match(
      thrown(() => formBody(form, many)),
      { status: 400, code },
      says,
    )
  }
  t.match(formBody(images(list(18_000), list(18_000)), many).fields, { images: [{ a: Array }, { a: Array }] })
})

t.test('files of a name and of its list are one list', async t => {
  const form = new Form()
  const [a, b] = ['a', 'b'].map(text => new Upload([Buffer.from(text)], '', ''))
  form.addFile('image', a!)
  form.addFile('image[]', b!)
  t.strictSame([...formBody(form, schema).files], [['image', [a, b]]])
})
