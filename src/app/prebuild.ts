/** Run by the build: work that every start would repeat, for `src/config/parsed.ts` and `src/validation/compile.ts`. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { _, Ajv } from 'ajv'
import standalone from 'ajv/dist/standalone/index.js'
import { parse } from 'yaml'
import { commands } from '../admin/commands/index.ts'
import { editorSchemas } from '../config/editor-schema.ts'
import { keyOf } from '../config/parsed.ts'
import { Source } from '../config/source.ts'
import { parseYamlFile } from '../config/yaml.ts'
import { endpoints } from '../endpoints/index.ts'
import { createAjv } from '../validation/ajv.ts'
import { compile, compileWith, keyOf as keyOfSchema } from '../validation/compile.ts'
import { split } from '../validation/split.ts'
import { checkConfig } from './check.ts'
import { referencePages } from './reference.ts'
import { described, type Purposes } from './reference-options.ts'
import { Registry } from './registry.ts'

export { driverProblem } from '../stores/open.ts'

/** Writes the parsed `files` to `target`. Throws a ConfigError for an invalid file. */
export async function writeParsed(files: readonly string[], target: string): Promise<void> {
  const parsed: Record<string, string> = {}
  for (const file of files) {
    const text = await readFile(file, 'utf8')
    parsed[keyOf(text)] = JSON.stringify(parseYamlFile(new Source(file, text)))
  }
  await writeFile(target, JSON.stringify(parsed))
}

/** Writes the compiled schemas of requests, commands and the configuration `config` to `target`. */
export async function writeValidators(config: string, target: string): Promise<void> {
  const library = createAjv({ Ajv, _ }, { source: true })
  const code: Record<string, string> = {}
  compileWith(json => {
    const check = library.compile(split(json))
    code[keyOfSchema(json)] = standalone.default(library, check)
    return check
  })
  await checkConfig(config)
  for (const { codec } of endpoints) codec.prepare?.()
  for (const { args } of Object.values(commands)) compile(args.json)
  const members = Object.entries(code).map(([key, text]) => `${JSON.stringify(key)}(module, require) {\n${text}\n}`)
  await writeFile(target, `module.exports = {\n${members.join(',\n')}\n}\n`)
}

/** Writes the JSON Schemas of configuration files for editors, and the reference, from the texts in `texts`. */
export async function writeSchemas(texts: string, schemaFolder: string, referenceFolder: string): Promise<void> {
  await mkdir(schemaFolder, { recursive: true })
  await mkdir(referenceFolder, { recursive: true })
  for (const [path, text] of Object.entries(await schemaFiles(texts, schemaFolder, referenceFolder))) {
    await writeFile(path, text)
  }
}

/** Returns the schemas and pages by the paths that they are written to. */
export async function schemaFiles(
  texts: string,
  schemaFolder: string,
  referenceFolder: string,
): Promise<Record<string, string>> {
  const plain = editorSchemas(new Registry())
  const read = async (name: string) => parse(await readFile(join(texts, `${name}.yaml`), 'utf8'))
  const options: Purposes = await read('options')
  const pages = await referencePages(plain, { options, errors: await read('errors'), headers: await read('headers') })
  const files: Record<string, string> = {}
  for (const [name, schema] of Object.entries(described(plain, options))) {
    files[join(schemaFolder, `${name}.json`)] = `${JSON.stringify(schema, null, 2)}\n`
  }
  for (const [name, page] of Object.entries(pages)) files[join(referenceFolder, name)] = page
  return files
}
