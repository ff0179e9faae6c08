/** Every check of `reliability.ts` is a test: its id stands in the name of one, or in what a name is made of. */
import t from 'tap'
import { placesOf } from './helpers/cited.ts'
import { sourceFiles, textOf } from './helpers/sources.ts'
import { checks } from './reliability.ts'

/** Checks that no test here can make, and why. */
const missing: Readonly<Record<string, string>> = {
  'SI-13': 'no tool writes a file yet: it comes with the MCP server',
  'ST-03': 'to mount a file system takes rights that tests do not have; ST-02 limits the file instead',
  'ST-06':
    'nothing of the gateway reads for longer than a moment, and nothing bounds the log while another program does',
  'ST-07': 'Redis is not spoken to yet',
  'ST-08': 'Redis is not spoken to yet',
  'ST-09': 'Redis is not spoken to yet',
  'ST-10': 'Redis is not spoken to yet',
  'ST-11': 'PostgreSQL is not spoken to yet',
  'ST-12': 'PostgreSQL is not spoken to yet',
  'CC-03': 'PostgreSQL is not spoken to yet',
  'CC-07': 'equal requests are not joined',
}

const places = placesOf(/\b(?:MF|PA|SI|SF|UF|OB|CF|SD|AT|CS|ST|CC)-\d{2}\b/g)
const isNightly = (file: string) => file.startsWith('nightly/')

t.test('every check is in the name of a test, but for those that wait for what they are about', async t => {
  for (const [id, [gate, title]] of Object.entries(checks)) {
    const files = (places.get(id) ?? []).filter(file => isNightly(file) === (gate === 'nightly'))
    if (id in missing) t.same(files, [], `${id} ${title}: not yet, because ${missing[id]}`)
    else t.ok(files.length > 0, `${id} ${title}: in ${files.length} tests`)
  }
})

t.test('no test cites a check that does not exist', async t => {
  t.same(
    [...places].filter(([id]) => !(id in checks)),
    [],
  )
  t.same(
    Object.keys(missing).filter(id => !(id in checks)),
    [],
  )
})

/** Cells of the rows of all tables of a page, without the heads. */
const rowsOf = (page: string): string[][] =>
  [...page.matchAll(/^\|.*\|$(?!\n\| --- )/gm)]
    .map(([row]) => row.split('|').slice(1, -1))
    .map(cells => cells.map(cell => cell.trim().replaceAll('`', '')))
    .filter(([first]) => first !== '---')

t.test('the page about reliability has options of at most 25 rows, with their defaults', async t => {
  const [, bounds = ''] = textOf('docs/reliability.md').split(/^## /m)
  const rows = rowsOf(bounds)
  t.ok(rows.length > 20 && rows.length <= 25, `${rows.length} rows`)
  const options = rowsOf(textOf('docs/reference/configuration.md'))
  for (const [what = '', option, value] of rows) {
    const [, , initial] = options.find(([name]) => name === option) ?? []
    t.equal(initial?.replaceAll('"', ''), value, `${what}: ${option}`)
  }
})

t.test('the page about limits has the numbers of the code', async t => {
  const declared = sourceFiles.flatMap(file => [...textOf(file).matchAll(/^(?:export )?const ([A-Z_]+) = (.+)$/gm)])
  /** Values that constants of a name have: products of numbers and of other constants. */
  const valuesOf = (name: string): number[] =>
    declared.filter(([, found]) => found === name).map(([, , text]) => productOf(text!))
  const productOf = (text: string): number =>
    text
      .split(' * ')
      .map(factor =>
        /^[\d_]+$/.test(factor) ? Number(factor.replaceAll('_', '')) : (valuesOf(factor)[0] ?? Number.NaN),
      )
      .reduce((product, factor) => product * factor)
  const rows = rowsOf(textOf('docs/limits.md')).filter(([, limit]) => limit !== 'Limit')
  t.ok(rows.length > 20, `${rows.length} rows`)
  for (const [what, limit, name] of rows) t.ok(valuesOf(name!).includes(Number(limit)), `${what}: ${name}`)
})
