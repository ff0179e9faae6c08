/** The reference and the schemas for editors: written by `npm run schemas`, and current. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { schemaFiles } from '../../src/app/prebuild.ts'
import { optionsIn } from '../../src/app/reference-options.ts'
import { Registry } from '../../src/app/registry.ts'
import { editorSchemas } from '../../src/config/editor-schema.ts'
import { codesInSource } from '../helpers/codes.ts'
import { headersInSource } from '../helpers/header-names.ts'
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
    Object.keys(textsOf('errors').answers).sort(),
  )
})

/** Names of no answer: states of rows and calls, reports of providers, and a failure that its reader handles. */
const UNANSWERED = ['committed', 'completed', 'document_unread', 'durable', 'quota_exceeded']

t.test('every code that the source names stands in the reference', async t => {
  const { answers, elsewhere } = textsOf('errors') as {
    answers: Record<string, string>
    elsewhere: Record<string, Record<string, string>>
  }
  const known = new Set([answers, ...Object.values(elsewhere)].flatMap(codes => Object.keys(codes)))
  const found = codesInSource()
  t.ok(found.size > 100, `${found.size} codes`)
  t.strictSame(
    [...found].filter(([code]) => !known.has(code) && !UNANSWERED.includes(code)),
    [],
    'add it to build/reference/errors.yaml, and its status to src/openapi/errors.ts',
  )
  t.strictSame(
    [...known].filter(code => !found.has(code) && !code.startsWith('video_')),
    [],
    'no source names it',
  )
})

t.test('every header that the source reads or writes stands in the reference', async t => {
  const known = new Set(
    Object.values(textsOf('headers') as Record<string, object>).flatMap(names => Object.keys(names)),
  )
  const found = headersInSource()
  t.ok(found.size > 60, `${found.size} headers`)
  t.strictSame(
    [...found].filter(([name]) => !known.has(name)),
    [],
    'add it to build/reference/headers.yaml',
  )
  const source = sourceFiles.map(textOf).join('\n').toLowerCase()
  t.strictSame(
    [...known].filter(name => !source.includes(name)),
    [],
    'no source names it',
  )
})
