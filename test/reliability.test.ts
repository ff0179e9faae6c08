/** Every check of `reliability.ts` is a test: its id stands in the name of one, or in what a name is made of. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'
import { checks } from './reliability.ts'

const root = fileURLToPath(new URL('.', import.meta.url))
const own = new Set(['reliability.ts', 'reliability.test.ts'])

/** Checks that no test here can make, and why. */
const missing: Readonly<Record<string, string>> = {
  'SI-13': 'no tool writes a file yet: it comes with the MCP server',
  'CS-09': 'there are no video jobs yet',
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
  'CC-08': 'the interface has no such header',
}

const ID = /\b(?:MF|PA|SI|SF|UF|OB|CF|SD|AT|CS|ST|CC)-\d{2}\b/g

/** The ids in the texts of a file, but for messages of assertions: `t.test` and its like take names. */
function cited(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  if (text.search(ID) < 0) return []
  const ids: string[] = []
  const walk = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node)) {
      if (!isMessage(node)) ids.push(...(node.text.match(ID) ?? []))
    }
    ts.forEachChild(node, walk)
  }
  walk(ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true))
  return ids
}

/** Whether a text is what an assertion says: an argument of `t.equal`, `t.ok` and all but `t.test`. */
function isMessage(node: ts.Node): boolean {
  const text = ts.isTemplateExpression(node.parent) ? node.parent : node
  const call = text.parent
  return (
    ts.isCallExpression(call) && ts.isPropertyAccessExpression(call.expression) && call.expression.name.text !== 'test'
  )
}

const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
  file => file.endsWith('.ts') && !own.has(file),
)
const placesOf = new Map<string, string[]>()
for (const file of files) {
  for (const id of cited(file)) placesOf.set(id, [...(placesOf.get(id) ?? []), file])
}
const isNightly = (file: string) => file.startsWith('nightly/')

t.test('every check is in the name of a test, but for those that wait for what they are about', async t => {
  for (const [id, [gate, title]] of Object.entries(checks)) {
    const places = (placesOf.get(id) ?? []).filter(file => isNightly(file) === (gate === 'nightly'))
    if (id in missing) t.same(places, [], `${id} ${title}: not yet, because ${missing[id]}`)
    else t.ok(places.length > 0, `${id} ${title}: in ${places.length} tests`)
  }
})

t.test('no test cites a check that does not exist', async t => {
  t.same(
    [...placesOf].filter(([id]) => !(id in checks)),
    [],
  )
  t.same(
    Object.keys(missing).filter(id => !(id in checks)),
    [],
  )
})
