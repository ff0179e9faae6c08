/** Edge cases are tests: their ids stand in the names of some (docs/contributing/edge-cases.md); so do promises of docs/client-wires.md. */
import t from 'tap'
import { placesOf } from './helpers/cited.ts'
import { textOf } from './helpers/sources.ts'

/** By the heading of its table: the letter of its ids, and how many rows it has at least. */
const tables: readonly (readonly [heading: string, letter: string, least: number])[] = [
  ['Media', 'M', 24],
  ['Jobs', 'J', 18],
  ['OAuth', 'O', 31],
  ['MCP', 'X', 20],
]

for (const [heading, letter, least] of tables) {
  const [, section = ''] = textOf('docs/contributing/edge-cases.md').split(`\n## ${heading}\n`)
  const rows = [...section.matchAll(new RegExp(`^\\| (${letter}\\d+) \\|`, 'gm'))].map(([, id]) => id!)
  const places = placesOf(new RegExp(`\\b${letter}\\d{1,2}\\b`, 'g'))

  t.test(`every edge case of ${heading} is in the name of a test`, async t => {
    t.ok(rows.length >= least)
    for (const id of rows) {
      const files = places.get(id) ?? []
      t.ok(files.length > 0, `${id}: in ${files.length} tests`)
    }
  })

  t.test(`no test cites an edge case of ${heading} that is not in the table`, async t => {
    t.same(
      [...places].filter(([id]) => !rows.includes(id)),
      [],
    )
  })
}

t.test('every test that the page of client wires names is there', async t => {
  const lines = textOf('docs/client-wires.md')
    .split('\n')
    .filter(line => /^\| (?!What holds|---)/.test(line))
  t.ok(lines.length >= 25)
  for (const line of lines) {
    const named = [...line.matchAll(/`(test\/[\w/-]+\.test\.ts)` "([^"]+)"/g)]
    t.ok(named.length > 0, line)
    for (const [, file, name] of named) {
      t.ok(
        testNamesOf(file!).some(text => text.includes(name!)),
        `${file}: ${name}`,
      )
    }
  }
})

/** The texts behind `test(` of a file, and what their variables leave of them. */
const testNamesOf = (file: string): string[] =>
  [...textOf(file).matchAll(/\btest\(\s*(['"`])(.*?)\1,/gs)].map(([, , name]) => name!)
