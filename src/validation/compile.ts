/**
 * Turns schemas into functions. Those of the package were turned into code when it was built: compiling them was a
 * quarter of a start, and the compiler a part of its memory.
 */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import type { JsonSchema } from '../core/schema.ts'
import { createAjv, reach } from './ajv.ts'
import { split } from './split.ts'

/** What one schema says is wrong, as `ajv` words it. */
export type Failure = ErrorObject
/** Whether a value is right; the failures of the last call are its `errors`. */
export type Check = ValidateFunction
/** Makes the function that a schema describes, with a `require` of its own. */
export type Made = (module: { exports: unknown }, require: (name: string) => unknown) => void

const load = createRequire(import.meta.url)

/** What a schema is known by: code belongs to one that is the same to the letter. */
export const keyOf = (json: JsonSchema): string => createHash('sha256').update(JSON.stringify(json)).digest('base64url')

/** The functions of the build; none when the code runs from its sources. */
let built: Readonly<Record<string, Made>> | undefined
let ajv: Ajv | undefined
let compileNew = (json: JsonSchema): Check => {
  ajv ??= createAjv(load('ajv') as typeof import('ajv'))
  return ajv.compile(split(json))
}

/** Schemas that were not there at the build are compiled by `compile` from now on. For the build itself. */
export function compileWith(compile: typeof compileNew): void {
  compileNew = compile
}

const known = new WeakMap<JsonSchema, Check>()

/** The function for a schema, made once for each schema object. Throws for a schema that is none. */
export function compile(json: JsonSchema): Check {
  let check = known.get(json)
  if (!check) {
    check = make(json)
    known.set(json, check)
  }
  return check
}

function make(json: JsonSchema): Check {
  built ??= readBuilt()
  const prepared = built[keyOf(json)]
  if (!prepared) return compileNew(json)
  const module: { exports: unknown } = { exports: undefined }
  prepared(module, reach(load))
  return module.exports as Check
}

function readBuilt(): Readonly<Record<string, Made>> {
  try {
    return load('./validators.cjs')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return {}
    throw thrown
  }
}
