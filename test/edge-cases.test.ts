/** Every edge case of media is a test: its id stands in the name of one (docs/edge-cases.md#media). */
import t from 'tap'
import { placesOf } from './helpers/cited.ts'
import { textOf } from './helpers/sources.ts'

const [, section = ''] = textOf('docs/edge-cases.md').split('## Media')
const rows = [...section.matchAll(/^\| (M\d+) \|/gm)].map(([, id]) => id!)
const places = placesOf(/\bM\d{1,2}\b/g)

t.test('every edge case of media is in the name of a test', async t => {
  t.ok(rows.length >= 24)
  for (const id of rows) {
    const files = places.get(id) ?? []
    t.ok(files.length > 0, `${id}: in ${files.length} tests`)
  }
})

t.test('no test cites an edge case that is not in the table', async t => {
  t.same(
    [...places].filter(([id]) => !rows.includes(id)),
    [],
  )
})
