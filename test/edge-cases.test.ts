/** Edge cases are tests: their ids stand in the names of some (docs/edge-cases.md). */
import t from 'tap'
import { placesOf } from './helpers/cited.ts'
import { textOf } from './helpers/sources.ts'

/** By the heading of its table: the letter of its ids, and how many rows it has at least. */
const tables: readonly (readonly [heading: string, letter: string, least: number])[] = [
  ['Media', 'M', 24],
  ['OAuth', 'O', 31],
  ['MCP', 'X', 20],
]

for (const [heading, letter, least] of tables) {
  const [, section = ''] = textOf('docs/edge-cases.md').split(`\n## ${heading}\n`)
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
