/**
 * Compiles schemas to functions. The build compiles those of the package: compiling them took a quarter of the start,
 * and the compiler a part of its memory.
 */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import type { JsonSchema } from '../core/schema.ts'
import { perObject } from '../lib/per-object.ts'
import { createAjv, reach } from './ajv.ts'
import { split } from './split.ts'

/** One failure, in ajv's terms. */
export type Failure = ErrorObject
/** Whether a value is valid; `errors` holds the failures of the last call. */
export type Check = ValidateFunction
/** Creates the function of a schema, given its `require`. */
export type Made = (module: { exports: unknown }, require: (name: string) => unknown) => void

const load = createRequire(import.meta.url)

/** Key of a schema's compiled code: the hash of its exact JSON. */
export const keyOf = (json: JsonSchema): string => createHash('sha256').update(JSON.stringify(json)).digest('base64url')

/** Functions of the build; undefined when the code runs from its sources. */
let built: Readonly<Record<string, Made>> | undefined
let ajv: Ajv | undefined
let compileNew = (json: JsonSchema): Check => {
  ajv ??= createAjv(load('ajv') as typeof import('ajv'))
  return ajv.compile(split(json))
}

/** For the build: compiles schemas that are not prebuilt with `compile`. */
export function compileWith(compile: typeof compileNew): void {
  compileNew = compile
}

/** The function of a schema, created once per schema object. Throws for an invalid schema. */
export const compile = perObject((json: JsonSchema): Check => {
  built ??= readBuilt()
  const prepared = built[keyOf(json)]
  if (!prepared) return compileNew(json)
  const module: { exports: unknown } = { exports: undefined }
  prepared(module, reach(load))
  return module.exports as Check
})

function readBuilt(): Readonly<Record<string, Made>> {
  try {
    return load('./validators.cjs')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return {}
    throw thrown
  }
}
