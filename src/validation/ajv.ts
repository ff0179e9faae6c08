/** The one dialect of JSON Schema that everything is checked with: configuration, requests, arguments of commands. */
import type { Ajv, CodeKeywordDefinition, KeywordCxt } from 'ajv'
import { isLonger, isShorter } from '../lib/code-points.ts'
import { examples, parseUnit, type Unit } from './units.ts'

/** What compiled code refers to by name; `reach` gives it to code that the build has kept. */
const OWN = { units: { parseUnit }, formats: { date: isDate }, lengths: { isLonger, isShorter } } as const

/** `ajv`, which is loaded only for a schema that was not there at the build. */
type Library = Pick<typeof import('ajv'), 'Ajv' | '_'>

/**
 * An instance keeps what it has compiled, by schema object. With `source` it also keeps the code, for the build.
 * Defaults are filled in and units turned into numbers IN PLACE, and nothing else is changed: what has neither, such as
 * a client's request, stays as it is.
 */
export function createAjv({ Ajv, _ }: Library, { source = false } = {}): Ajv {
  const ajv = new Ajv({
    strict: true,
    // `s.tagged` requires `type` beside the members that define it.
    strictRequired: false,
    allowUnionTypes: true,
    useDefaults: true,
    discriminator: true,
    ownProperties: true,
    // `split` has made the pieces.
    inlineRefs: false,
    // Our own schemas are checked by tests.
    meta: false,
    validateSchema: false,
    code: { source, formats: _`require("formats")` },
    verbose: true,
  })
  ajv.addFormat('date', isDate)
  // The library counts every code point, which holds the event loop for large texts.
  for (const keyword of ['minLength', 'maxLength']) ajv.removeKeyword(keyword)
  ajv.addKeyword(lengthKeyword({ _ }, 'minLength', isShorter))
  ajv.addKeyword(lengthKeyword({ _ }, 'maxLength', isLonger))
  return ajv.addKeyword({
    keyword: 'unit',
    schemaType: 'string',
    metaSchema: { enum: Object.keys(examples) },
    modifying: true,
    code(cxt: KeywordCxt) {
      const { gen, schema, data, it } = cxt
      const parse = gen.scopeValue('func', { ref: parseUnit, code: _`require("units").parseUnit` })
      const value = gen.const('value', _`${parse}(${schema as Unit}, ${data})`)
      gen.if(
        _`${value} === undefined`,
        () => cxt.error(),
        () => gen.assign(_`${it.parentData}[${it.parentDataProperty}]`, value),
      )
    },
  })
}

/** A keyword that limits the length of strings, by the function of that name in `lengths`. */
function lengthKeyword(
  { _ }: Pick<Library, '_'>,
  keyword: 'minLength' | 'maxLength',
  refuses: (text: string, limit: number) => boolean,
): CodeKeywordDefinition {
  const code = keyword === 'minLength' ? _`require("lengths").isShorter` : _`require("lengths").isLonger`
  return {
    keyword,
    type: 'string',
    schemaType: 'number',
    error: {
      message: `must be ${keyword === 'minLength' ? 'longer' : 'shorter'}`,
      params: ({ schema }) => _`{limit: ${schema as number}}`,
    },
    code(cxt: KeywordCxt) {
      const refused = cxt.gen.scopeValue('func', { ref: refuses, code })
      cxt.fail(_`${refused}(${cxt.data}, ${cxt.schema as number})`)
    },
  }
}

/** A `require` for compiled code: what is ours by its name here, all else by `load`. */
export const reach =
  (load: (name: string) => unknown) =>
  (name: string): unknown =>
    Object.hasOwn(OWN, name) ? OWN[name as keyof typeof OWN] : load(name)

function isDate(text: string): boolean {
  return !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().slice(0, 10) === text
}
