/** Every check of `reliability.ts` is a test: its id stands in the name of one, or in what a name is made of. */
import t from 'tap'
import { placesOf } from './helpers/cited.ts'
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
