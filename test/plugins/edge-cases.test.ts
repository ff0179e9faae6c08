/** Every known edge case is a test: its id stands in the name of one, or in the name of a row of a golden table. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('..', import.meta.url))
const own = 'plugins/edge-cases.test.ts'

/** How many rows each section of the list has: framing, chat chunks, errors, requests. */
const sections = { S: 24, C: 37, E: 15, R: 20 }
const ids = Object.entries(sections).flatMap(([letter, count]) =>
  Array.from({ length: count }, (_, i) => `${letter}${i + 1}`),
)

/** Rows that nothing here can meet, and why. */
const inapplicable: Readonly<Record<string, string>> = {}

/** What test files say outside comments, and the names of golden rows. */
function said(file: string): string {
  const text = readFileSync(join(root, file), 'utf8')
  if (file.endsWith('.ts')) return text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, '')
  return (JSON.parse(text) as { name?: string }[]).map(row => row.name ?? '').join('\n')
}

const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
  file => (file.endsWith('.ts') || file.endsWith('.table.json')) && relative(own, file) !== '',
)
const names = files.map(file => ({ file, text: said(file) }))
const placesOf = (id: string) => {
  const pattern = new RegExp(`\\b${id}\\b`)
  return names.filter(({ text }) => pattern.test(text)).map(({ file }) => file)
}

t.test('every edge case is in the name of a test, but for those that cannot come up', async t => {
  for (const id of ids) {
    const places = placesOf(id)
    if (id in inapplicable) t.same(places, [], `${id} has no test: ${inapplicable[id]}`)
    else t.ok(places.length > 0, `${id} is in ${places.length} files`)
  }
})

t.test('no name cites an edge case that does not exist', async t => {
  const known = new Set(ids)
  for (const { file, text } of names.filter(({ file }) => file.endsWith('.json'))) {
    const cited = text.matchAll(/^((?:[SCER]\d+[,\s]+)+)/gm)
    const unknown = [...cited].flatMap(match => match[1]!.match(/[SCER]\d+/g)!).filter(id => !known.has(id))
    t.same(unknown, [], file)
  }
})
