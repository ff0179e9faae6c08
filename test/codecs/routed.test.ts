/** What any client wire may say of the routing of a chat request: what is read, and what is refused. */
import t from 'tap'
import type { GatewayError } from '../../src/lib/error.ts'
import { routed } from '../../src/operations/chat/routed.ts'
import { thrown } from '../core/kit.ts'

t.test('fields of routing leave the body, and name its model where nothing else does', t => {
  const rows: [body: unknown, left: object | undefined, fields?: object][] = [
    [{ model: 'a' }, undefined],
    [null, undefined],
    [['models'], undefined],
    [{ model: 'a', models: null, provider: null }, { model: 'a' }, {}],
    [{ model: 'a', models: [] }, { model: 'a' }, {}],
    [{ models: ['a'] }, { model: 'a' }, { models: ['a'] }],
    [{ models: ['a', 'b', 'a', 'b:floor'] }, { model: 'a' }, { models: ['a', 'b', 'b:floor'] }],
    [{ model: null, models: ['a', 'b'] }, { model: 'a' }, { models: ['a', 'b'] }],
    [{ model: 'c', models: ['a', 'b'] }, { model: 'c' }, { models: ['a', 'b'] }],
    [{ model: 7, models: ['a'] }, { model: 7 }, { models: ['a'] }],
    [{ model: 'a', routing: 'price' }, { model: 'a' }, { routing: 'price' }],
    [{ model: 'a', routing: null, no_reasoning: null }, { model: 'a' }, {}],
    [{ model: 'auto', free_models_only: true }, { model: 'auto' }, { free_models_only: true }],
    [{ model: 'auto', no_reasoning: false }, { model: 'auto' }, { no_reasoning: false }],
    [
      { model: 'a', provider: { order: ['x', 'x'], only: null, ignore: ['y'], allow_fallbacks: false, sort: 'price' } },
      { model: 'a' },
      { provider: { order: ['x'], ignore: ['y'], allow_fallbacks: false, sort: 'price' } },
    ],
  ]
  for (const [body, left, fields] of rows) {
    const given = JSON.stringify(body)
    const read = routed(body)
    if (left === undefined) t.equal(read, undefined, given)
    else t.strictSame(read, { body: left, fields }, given)
    t.equal(JSON.stringify(body), given, 'the body stays as it is')
  }
  t.end()
})

t.test('prices are numbers or decimal texts, of which no digit is lost', t => {
  const rows: [given: unknown, read: string][] = [
    [0, '0.0'],
    [0.3, '0.3'],
    [2.5, '2.5'],
    [1e-7, '0.000000'],
    ['0.50', '0.50'],
    ['12.1234567', '12.123456'],
    ['999999999', '999999999.0'],
  ]
  for (const [prompt, read] of rows) {
    const limit = routed({ provider: { max_price: { prompt } } })?.fields.provider?.max_price?.prompt
    t.equal(String(Number(limit)), String(Number(read)), JSON.stringify(prompt))
  }
  t.end()
})

t.test('what is of another type, or unknown, is refused by its name', t => {
  const long = 'x'.repeat(257)
  const rows: [fields: object, param: string][] = [
    [{ models: 'a' }, 'models'],
    [{ models: { 0: 'a' } }, 'models'],
    [{ models: ['a', 7] }, 'models[1]'],
    [{ models: [''] }, 'models[0]'],
    [{ models: [long] }, 'models[0]'],
    [{ models: Array.from({ length: 11 }, (_, n) => `m${n}`) }, 'models'],
    [{ routing: 'cheap' }, 'routing'],
    [{ free_models_only: 'yes' }, 'free_models_only'],
    [{ no_reasoning: 1 }, 'no_reasoning'],
    [{ provider: 'openai' }, 'provider'],
    [{ provider: ['openai'] }, 'provider'],
    [{ provider: { quantizations: ['fp8'] } }, 'provider.quantizations'],
    [{ provider: JSON.parse('{"__proto__":{}}') }, 'provider.__proto__'],
    [{ provider: { order: 'openai' } }, 'provider.order'],
    [{ provider: { only: [null] } }, 'provider.only[0]'],
    [{ provider: { ignore: Array.from({ length: 101 }, (_, n) => `p${n}`) } }, 'provider.ignore'],
    [{ provider: { allow_fallbacks: 'false' } }, 'provider.allow_fallbacks'],
    [{ provider: { sort: 'auto' } }, 'provider.sort'],
    [{ provider: { sort: { by: 'price' } } }, 'provider.sort'],
    [{ provider: { max_price: 1 } }, 'provider.max_price'],
    [{ provider: { max_price: { request: 1 } } }, 'provider.max_price.request'],
    [{ provider: { max_price: { prompt: -1 } } }, 'provider.max_price.prompt'],
    [{ provider: { max_price: { prompt: '1e3' } } }, 'provider.max_price.prompt'],
    [{ provider: { max_price: { completion: true } } }, 'provider.max_price.completion'],
    [{ provider: { max_price: { completion: 1e9 } } }, 'provider.max_price.completion'],
  ]
  for (const [fields, param] of rows) {
    const says = JSON.stringify(fields).slice(0, 80)
    const error = thrown(() => routed({ model: 'a', ...fields })) as GatewayError
    t.match(error, { status: 400, code: 'invalid_parameters', param }, says)
    t.ok(error.message.startsWith(`${param}: `), error.message)
  }
  t.end()
})
