/** End users and tags of requests, by headers and bodies. */
import t from 'tap'
import type { EndUserOptions } from '../../src/core/policy.ts'
import type { Json } from '../../src/json/json.ts'
import { Form } from '../../src/lib/body.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { labelsOf } from '../../src/policy/labels.ts'
import { thrown } from '../core/kit.ts'

interface Facts {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly proven?: string
  readonly options?: Partial<EndUserOptions>
}

const read = ({ headers = {}, body, proven, options }: Facts) => {
  const http = { header: (name: string) => headers[name] }
  return labelsOf({ http, proven, options: options && { header: undefined, field: 'user', ...options } }, body)
}
const shown = (facts: Facts) => {
  const { endUser, tags } = read(facts)
  return { endUser, tags: Object.fromEntries(tags) }
}
const refusal = (facts: Facts): GatewayError => thrown(() => read(facts)) as GatewayError

const uuid = '0b6c2cf0-7f1b-4d9e-8f5a-2b8e6f3f9c11'
const long = (count: number) => 'x'.repeat(count)
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 'v']))

const names: readonly (readonly [what: string, facts: Facts, endUser: string | undefined])[] = [
  ['a field of chat completions', { body: { user: 'ann' } }, 'ann'],
  ['a number', { body: { user: 42 } }, '42'],
  ['nothing', { body: {} }, undefined],
  ['an empty text', { body: { user: '' } }, undefined],
  ['null', { body: { user: null } }, undefined],
  ['an object', { body: { user: { id: 'ann' } } }, undefined],
  ['a list', { body: ['ann'] }, undefined],
  ['the field that took its place', { body: { safety_identifier: 'ann' } }, 'ann'],
  ['the field of messages', { body: { metadata: { user_id: 'ann' } } }, 'ann'],
  ['the first of several fields', { body: { user: 'ann', metadata: { user_id: 'bob' } } }, 'ann'],
  [
    'an agent with a session',
    { body: { metadata: { user_id: `user_1_account_2_session_${uuid}` } } },
    'user_1_account_2',
  ],
  [
    'an agent with JSON',
    { body: { metadata: { user_id: JSON.stringify({ device_id: 'd', account_uuid: uuid, session_id: 's' }) } } },
    uuid,
  ],
  [
    'an agent without an account',
    { body: { metadata: { user_id: '{"device_id":"d","account_uuid":"","session_id":"s"}' } } },
    'd',
  ],
  ['a session alone', { body: { metadata: { user_id: '{"session_id":"s"}' } } }, undefined],
  ['a text that begins like JSON', { body: { metadata: { user_id: '{ann' } } }, '{ann'],
  ['control characters', { body: { user: ' a\0b\nc ' } }, 'a b c'],
  ['half a character', { body: { user: 'a\ud800' } }, 'a\ufffd'],
  ['a text that is too long for a name', { body: { user: long(257) } }, undefined],
  ['a header that nothing configures', { headers: { 'x-user': 'ann' } }, undefined],
  ['a configured header', { headers: { 'x-user': 'ann' }, options: { header: 'x-user' } }, 'ann'],
  [
    'a header before the body',
    { headers: { 'x-user': 'ann' }, body: { user: 'b' }, options: { header: 'x-user' } },
    'ann',
  ],
  ['a body without the header', { body: { user: 'bob' }, options: { header: 'x-user' } }, 'bob'],
  [
    'a header in UTF-8',
    { headers: { 'x-user': Buffer.from('Zoë').toString('latin1') }, options: { header: 'x-user' } },
    'Zoë',
  ],
  ['a header in Latin-1', { headers: { 'x-user': 'Zoë' }, options: { header: 'x-user' } }, 'Zoë'],
  ['a configured field', { body: { user: 'ann', customer: 'bob' }, options: { field: 'customer' } }, 'bob'],
  ['a field of a field', { body: { metadata: { customer: 'bob' } }, options: { field: 'metadata.customer' } }, 'bob'],
  ['a configured field that is not there', { body: { user: 'ann' }, options: { field: 'customer' } }, undefined],
  ['options of the AI SDK', { body: { prompt: [], providerOptions: { gateway: { user: 'ann' } } } }, 'ann'],
  ['a member of every object', { body: { user: 'ann' }, options: { field: 'constructor.name' } }, undefined],
  [
    'the credential before all',
    { headers: { 'x-user': 'a' }, body: { user: 'b' }, proven: 'cy', options: { header: 'x-user' } },
    'cy',
  ],
]
for (const [what, facts, endUser] of names) {
  t.test(`an end user is read from ${what}`, async t => {
    t.equal(shown(facts).endUser, endUser)
  })
}

t.test('a form names an end user', async t => {
  const form = new Form()
  form.addText('user', 'ann')
  t.equal(shown({ body: form }).endUser, 'ann')
})

const tagged: readonly (readonly [what: string, header: string | undefined, metadata: unknown, tags: Json])[] = [
  ['a header', 'team=blue,feature=chat', undefined, { team: 'blue', feature: 'chat' }],
  ['spaces around pairs', ' team = blue , feature=chat ,', undefined, { team: 'blue', feature: 'chat' }],
  ['a value with an equals sign', 'q=a=b', undefined, { q: 'a=b' }],
  ['a tag without a value', 'team=', undefined, { team: '' }],
  ['an empty header', '', undefined, {}],
  ['metadata', undefined, { team: 'blue', level: 3, trial: true }, { team: 'blue', level: '3', trial: 'true' }],
  ['both, the header first', 'team=blue', { team: 'red', feature: 'chat' }, { team: 'blue', feature: 'chat' }],
  ['what is no text', undefined, { a: null, b: {}, c: [], d: 'x' }, { d: 'x' }],
  ['the name of an end user', undefined, { user_id: 'ann', team: 'blue' }, { team: 'blue' }],
  ['metadata that is no object', undefined, 'team=blue', {}],
  ['control characters', undefined, { 'a\nb': 'c\0d' }, { 'a b': 'c d' }],
  ['as many as there may be', undefined, many(16), many(16)],
  ['longest names and values', undefined, { [long(64)]: long(512) }, { [long(64)]: long(512) }],
]
for (const [what, header, metadata, tags] of tagged) {
  t.test(`tags are read from ${what}`, async t => {
    const headers = header === undefined ? {} : { 'x-gateway-tags': header }
    t.strictSame(shown({ headers, body: metadata === undefined ? {} : { metadata } }).tags, tags)
  })
}

t.test('names of tags are names of members of every object too', async t => {
  const { tags } = read({ headers: { 'x-gateway-tags': '__proto__=a,constructor=b' } })
  t.strictSame(
    [...tags],
    [
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ],
  )
})

t.test('a request without labels makes none of its own', async t => {
  t.equal(read({}), read({ body: { messages: [] } }))
})

const tags = (header: string): Facts => ({ headers: { 'x-gateway-tags': header } })
const refused: readonly (readonly [facts: Facts, param: string, said: string])[] = [
  [
    tags('blue'),
    'x-gateway-tags',
    'x-gateway-tags: "blue" is not a tag. Write pairs such as "team=blue,feature=chat".',
  ],
  [tags('team=blue,=x'), 'x-gateway-tags', '"=x" is not a tag'],
  [tags(`${long(65)}=x`), 'x-gateway-tags', 'x-gateway-tags: the key of a tag may have at most 64 characters.'],
  [tags(`team=${long(513)}`), 'x-gateway-tags', 'the value of the tag "team" may have at most 512 characters.'],
  [tags(Object.keys(many(17)).join('=v,').concat('=v')), 'x-gateway-tags', 'a request may have at most 16 tags.'],
  [{ body: { metadata: many(17) } }, 'metadata', 'metadata: a request may have at most 16 tags.'],
  [{ ...tags('a=1'), body: { metadata: many(16) } }, 'metadata', 'metadata: a request may have at most 16 tags.'],
  [
    { body: { metadata: { [long(65)]: 'x' } } },
    'metadata',
    'metadata: the key of a tag may have at most 64 characters.',
  ],
  [{ body: { metadata: { a: long(513) } } }, 'metadata', 'the value of the tag "a" may have at most 512 characters.'],
  [
    { body: { user: long(257) }, options: {} },
    'user',
    'user: the name of an end user may have at most 256 characters.',
  ],
  [
    { headers: { 'x-user': long(257) }, options: { header: 'x-user' } },
    'x-user',
    'x-user: the name of an end user may have at most 256 characters.',
  ],
]
for (const [facts, param, said] of refused) {
  t.test(`a request is refused: ${said}`, async t => {
    const error = refusal(facts)
    t.match(error, { status: 400, code: 'invalid_parameters', param })
    t.ok(error.message.includes(said), error.message)
  })
}
