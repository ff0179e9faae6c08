/** Schemas become functions: most at the build, and then they say the same as those that are compiled later. */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import t from 'tap'
import { commands } from '../../src/admin/commands/index.ts'
import { gatewayFile } from '../../src/config/schemas/gateway.ts'
import { modelsFile } from '../../src/config/schemas/models.ts'
import { providerFile } from '../../src/config/schemas/provider.ts'
import { chatRequest } from '../../src/core/chat-request.ts'
import { type JsonSchema, s } from '../../src/core/schema.ts'
import { filters } from '../../src/filters/index.ts'
import { embeddingRequest } from '../../src/operations/embeddings/request.ts'
import { reach } from '../../src/validation/ajv.ts'
import { type Check, compile, keyOf, type Made } from '../../src/validation/compile.ts'
import { type Json, rows, valid } from '../codecs/bodies.ts'

const load = createRequire(import.meta.url)
const built = load('../../dist/src/validators.cjs') as Record<string, Made>
function atBuild(json: JsonSchema): Check {
  const module: { exports: unknown } = { exports: undefined }
  built[keyOf(json)]!(module, reach(load))
  return module.exports as Check
}

t.test('the build holds the code of all that is checked at a start, in requests and in commands', async t => {
  const schemas = [gatewayFile, modelsFile, providerFile, chatRequest, embeddingRequest]
  for (const { json } of [...schemas, ...Object.values(commands).map(({ args }) => args)]) {
    t.ok(keyOf(json) in built, JSON.stringify(json).slice(0, 200))
  }
  for (const { name, options } of filters) t.ok(keyOf(options.json) in built, name)
})

t.test('of what the build made, the build alone loads the compiler of schemas in any case', async t => {
  const folder = dirname(load.resolve('../../dist/src/validators.cjs'))
  const loading = readdirSync(folder)
    .filter(name => name.endsWith('.js'))
    .filter(name => /(?:from |[rR]equire\()["']ajv\b/.test(readFileSync(join(folder, name), 'utf8')))
  t.strictSame(loading, ['prebuild.js'])
})

t.test('what the build made finds the same faults, and changes a request as little', async t => {
  const [early, late] = [atBuild(chatRequest.json), compile(chatRequest.json)]
  for (const [wrong, , right] of rows) {
    for (const fields of [wrong, right]) {
      const body: Json = JSON.parse(JSON.stringify({ ...valid, ...fields }))
      const before = structuredClone(body)
      t.equal(early(body), late(body))
      t.strictSame(early.errors, late.errors)
      t.strictSame(body, before)
    }
  }
})

t.test('a schema that was not there at the build is compiled', async t => {
  const { json } = s.object({
    wait: s.default(s.duration(), '2s'),
    sizes: s.array(s.either(s.size(), s.integer())),
    day: s.string({ format: 'date' }),
  })
  t.notOk(keyOf(json) in built)
  const check = compile(json)
  const value = { sizes: ['2KiB', 7], day: '2026-02-28' }
  t.ok(check(value))
  t.strictSame(value, { wait: 2000, sizes: [2048, 7], day: '2026-02-28' })
  const faults: [value: object, at: string, keyword: string][] = [
    [{ wait: '2 parsecs', sizes: [], day: '2026-02-28' }, '/wait', 'unit'],
    [{ wait: 2000, sizes: [], day: '2026-02-28' }, '/wait', 'unit'],
    [{ sizes: ['7'], day: '2026-02-28' }, '/sizes/0', 'anyOf'],
    [{ sizes: [], day: '2026-02-30' }, '/day', 'format'],
  ]
  for (const [value, instancePath, keyword] of faults) {
    t.notOk(check(value))
    t.match(check.errors?.at(-1), { instancePath, keyword, parentSchema: Object })
  }
})

t.test('lengths are those of code points, and large texts are not counted', async t => {
  const { json } = s.object({ text: s.string({ minLength: 2, maxLength: 3 }) })
  const check = compile(json)
  const cases: [text: string, keyword?: string][] = [
    ['', 'minLength'],
    ['a', 'minLength'],
    ['😀', 'minLength'],
    ['\ud83d\ud83d'],
    ['ab'],
    ['a😀'],
    ['😀😀😀'],
    ['a\ude00b'],
    ['abcd', 'maxLength'],
    ['😀😀😀a', 'maxLength'],
    ['😀😀😀😀', 'maxLength'],
  ]
  for (const [text, keyword] of cases) {
    t.equal(check({ text }), keyword === undefined, JSON.stringify(text))
    if (keyword)
      t.match(check.errors, [{ keyword, instancePath: '/text', params: { limit: keyword[1] === 'i' ? 2 : 3 } }])
  }
  const said = (text: string, limits: Record<string, number>) => {
    const check = compile(s.object({ text: s.string(limits) }).json)
    check({ text })
    return check.errors?.[0]?.message
  }
  t.equal(said('', { minLength: 1 }), 'must not be empty')
  t.equal(said('a', { minLength: 2 }), 'must have at least 2 characters')
  t.equal(said('abcd', { maxLength: 3 }), 'must have at most 3 characters')
  let looked = 0
  const { charCodeAt, codePointAt } = String.prototype
  const counting = (method: typeof codePointAt) =>
    function (this: string, at: number) {
      looked++
      return method.call(this, at)
    }
  Object.assign(String.prototype, { charCodeAt: counting(charCodeAt), codePointAt: counting(codePointAt) })
  t.teardown(() => Object.assign(String.prototype, { charCodeAt, codePointAt }))
  t.notOk(check({ text: 'x'.repeat(1e6) }))
  t.equal(looked, 0)
})
