/** The JSON Schema dialect of configuration, requests and command arguments. */
import type { Ajv, CodeKeywordDefinition, KeywordCxt } from 'ajv'
import { isLonger, isShorter } from '../lib/code-points.ts'
import { isAddress, urlOf } from '../lib/url.ts'
import { examples, parseUnit, type Unit } from './units.ts'

/** Whether browsers send it so: without a path, and without the usual port of its scheme. */
const isOrigin = (text: string): boolean => !isAddress(text) || urlOf(text)?.origin === text.toLowerCase()

const isUrl = (text: string): boolean => urlOf(text) !== undefined

/** Functions that compiled code calls by name; `reach` provides them to code compiled by the build. */
const OWN = {
  units: { parseUnit },
  formats: { date: isDate, origin: isOrigin, url: isUrl },
  lengths: { isLonger, isShorter },
} as const

/** `ajv` is loaded only to compile a schema that the build did not compile. */
type Library = Pick<typeof import('ajv'), 'Ajv' | '_'>

/**
 * Compiled functions are cached by schema object. With `source`, the instance also keeps their code, for the build.
 * Fills in defaults and converts units IN PLACE and changes nothing else: a client's request, which has neither, is not
 * modified.
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
    // `split` already made the pieces.
    inlineRefs: false,
    // Tests check the schemas.
    meta: false,
    validateSchema: false,
    code: { source, formats: _`require("formats")` },
    verbose: true,
  })
  ajv.addFormat('date', isDate)
  ajv.addFormat('origin', isOrigin)
  ajv.addFormat('url', isUrl)
  // An argument's option in the shell.
  ajv.addVocabulary(['shell'])
  // ajv counts every code point, which blocks the event loop on large texts.
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

/** A keyword that limits the length of strings with the function of that name in `lengths`. */
function lengthKeyword(
  { _ }: Pick<Library, '_'>,
  keyword: 'minLength' | 'maxLength',
  refuses: (text: string, limit: number) => boolean,
): CodeKeywordDefinition {
  const isLeast = keyword === 'minLength'
  const code = isLeast ? _`require("lengths").isShorter` : _`require("lengths").isLonger`
  return {
    keyword,
    type: 'string',
    schemaType: 'number',
    error: {
      message: ({ schema }) =>
        isLeast && schema === 1
          ? 'must not be empty'
          : `must have at ${isLeast ? 'least' : 'most'} ${schema} characters`,
      params: ({ schema }) => _`{limit: ${schema as number}}`,
    },
    code(cxt: KeywordCxt) {
      const refused = cxt.gen.scopeValue('func', { ref: refuses, code })
      cxt.fail(_`${refused}(${cxt.data}, ${cxt.schema as number})`)
    },
  }
}

/** A `require` for compiled code: the names of `OWN`, else `load`. */
export const reach =
  (load: (name: string) => unknown) =>
  (name: string): unknown =>
    Object.hasOwn(OWN, name) ? OWN[name as keyof typeof OWN] : load(name)

function isDate(text: string): boolean {
  return !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().slice(0, 10) === text
}
