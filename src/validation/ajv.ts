/** The one dialect of JSON Schema that everything is checked with: configuration, requests, arguments of commands. */
import type { Ajv, KeywordCxt } from 'ajv'
import { examples, parseUnit, type Unit } from './units.ts'

/** What compiled code refers to by name; `reach` gives it to code that the build has kept. */
const OWN = { units: { parseUnit }, formats: { date: isDate } } as const

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

/** A `require` for compiled code: what is ours by its name here, all else by `load`. */
export const reach =
  (load: (name: string) => unknown) =>
  (name: string): unknown =>
    Object.hasOwn(OWN, name) ? OWN[name as keyof typeof OWN] : load(name)

function isDate(text: string): boolean {
  return !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().slice(0, 10) === text
}
