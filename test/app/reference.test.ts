/** The reference and the schemas for editors: written by `npm run schemas`, and current. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { schemaFiles } from '../../src/app/prebuild.ts'
import { optionsIn } from '../../src/app/reference-options.ts'
import { Registry } from '../../src/app/registry.ts'
import { editorSchemas } from '../../src/config/editor-schema.ts'
import { sourceFiles, textOf } from '../helpers/sources.ts'

const textsOf = (name: string) => parse(readFileSync(`build/reference/${name}.yaml`, 'utf8'))
const files = await schemaFiles('build/reference', 'config/schema', 'docs/reference')

t.test('schemas and reference are current; otherwise run: npm run schemas', async t => {
  for (const [path, text] of Object.entries(files)) t.equal(readFileSync(path, 'utf8'), text, path)
  const pages = Object.keys(files).filter(path => path.startsWith('docs/'))
  t.strictSame(
    pages.sort(),
    readdirSync('docs/reference').map(name => `docs/reference/${name}`),
  )
})

t.test('every option has a purpose, and every purpose an option', async t => {
  const purposes = textsOf('options')
  const sections = optionsIn(editorSchemas(new Registry()), purposes)
  const unused = structuredClone(purposes)
  for (const [section, options] of Object.entries(sections)) {
    t.ok(options.length > 10, `${section} has options`)
    for (const { path, purpose } of options) {
      t.not(purpose, '', `${section} ${path}`)
      delete unused[section]?.[path]
      delete unused[section]?.[`pricing.${path.split('.').at(-1)}`]
    }
  }
  t.strictSame(
    Object.values(unused).flatMap(left => Object.keys(left as object)),
    [],
  )
})

t.test('every code of an error says what a caller can do', async t => {
  const page = files['docs/reference/errors.md']!
  const rows = [...page.matchAll(/^\| `(\w+)` \| ([\d, ]+) \| (.*) \|$/gm)]
  t.ok(rows.length > 40, `${rows.length}`)
  for (const [, code, , remedy] of rows) t.not(remedy, '', `${code}`)
  t.strictSame(
    rows.map(([, code]) => code!),
    Object.keys(textsOf('errors')).sort(),
  )
})

t.test('every header that a client sends or gets is one that the code names', async t => {
  const { request, answer } = textsOf('headers') as Record<'request' | 'answer', object>
  const source = sourceFiles.map(textOf).join('\n')
  for (const name of Object.keys({ ...request, ...answer })) t.ok(source.toLowerCase().includes(name), name)
  const own = new Set([...source.matchAll(/'(x-gateway-(?!actor)[a-z-]+)'/g)].map(([, name]) => name!))
  t.strictSame(
    [...own].sort(),
    Object.keys({ ...request, ...answer })
      .filter(name => name.startsWith('x-gateway-'))
      .sort(),
  )
})
