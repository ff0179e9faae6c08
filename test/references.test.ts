/** Every reference of a comment to a page leads to a heading of that page: `docs/contract.md#forms`. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { commentsOf, root, sourceFiles, textOf } from './helpers/sources.ts'

const testFiles = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.ts'))
  .map(name => join('test', name))

/** Documents by which comments were written, and which are not in the project. */
const outside =
  /\binterface \d|\bfield notes\b|\bdecisions (?:section )?\d|\breliability (?:section )?[A-C]\b|\bedge cases [A-Z]\d|(?<!\.)\b(?:wire|spec|design)\/[\w-]+\.(?:md|yaml)|(?<![\w/-])(?:media|jobs|mcp|interface|decisions|field-notes|client-wires|ai-sdk-protocol|house|peers)\.md\b/i

/** Whether the comments of a file may hold a reference: most files have none. */
const mayRefer = (file: string): boolean => {
  const text = textOf(file)
  return text.includes('docs/') || outside.test(text)
}

const comments = [...sourceFiles, ...testFiles]
  .filter(file => file !== 'test/references.test.ts' && mayRefer(file))
  .flatMap(file => commentsOf(file).map(text => ({ file, text })))

const pages = new Map<string, string>(
  readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.md'))
    .map(name => [`docs/${name}`, textOf(`docs/${name}`)]),
)
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-')
const anchors = new Map(
  [...pages].map(([page, text]) => [
    page,
    new Set([...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!))),
  ]),
)

t.test('every reference of a comment leads to a heading of a page', async t => {
  const references = comments.flatMap(({ file, text }) =>
    [...text.matchAll(/\b(docs\/(?:[\w-]+\/)?[\w-]+\.md)(?:#([\w-]*))?/g)].map(([whole, page, anchor]) => ({
      line: `${file}: ${whole}`,
      resolves: anchor === undefined ? pages.has(page!) : anchors.get(page!)?.has(anchor) === true,
    })),
  )
  t.ok(references.length > 150, `${references.length} references`)
  t.strictSame(
    references.filter(({ resolves }) => !resolves).map(({ line }) => line),
    [],
  )
})

t.test('ids of edge cases that a comment names stand in their page', async t => {
  const page = pages.get('docs/contributing/edge-cases.md')!
  const known = new Set<string>()
  for (const [, first, last] of page.matchAll(/^\| ([A-Z]\d+)(?:(?:,| to) ([A-Z]\d+))? \|/gm)) {
    for (let n = Number(first!.slice(1)); n <= Number((last ?? first)!.slice(1)); n++) known.add(`${first![0]}${n}`)
  }
  t.ok(known.size > 100, `${known.size} ids`)
  const unknown = comments.flatMap(({ file, text }) =>
    [...text.matchAll(/docs\/contributing\/edge-cases\.md#[\w-]+((?:(?:,| and| to)? [A-Z]\d+)+)/g)].flatMap(([, ids]) =>
      [...ids!.matchAll(/[A-Z]\d+/g)].filter(([id]) => !known.has(id)).map(([id]) => `${file}: ${id}`),
    ),
  )
  t.strictSame(unknown, [])
})

t.test('no comment refers to a document outside of the project', async t => {
  t.match('(media.md section 1.3)', outside, 'the pattern finds the forms that were used')
  t.match('wire/google.md 2.1', outside)
  t.strictSame(
    comments.filter(({ text }) => outside.test(text)).map(({ file, text }) => `${file}: ${text.slice(0, 120)}`),
    [],
  )
})

t.test('every variable GATEWAY_… that a page names is read by the sources', async t => {
  const known = sourceFiles.map(textOf).join('\n')
  for (const [page, text] of [...pages, ['README.md', textOf('README.md')]] as const) {
    const unknown = [...text.matchAll(/\bGATEWAY_[A-Z_]+\b/g)]
      .map(([name]) => name)
      .filter(name => !known.includes(name))
    t.strictSame(unknown, [], page)
  }
})
