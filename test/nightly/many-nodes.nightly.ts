/** The figures for 100 nodes that docs/nodes.md states. */
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { tableOfNodes } from './many-nodes.ts'

t.test('NP-08 docs/nodes.md states what the simulation of 100 nodes shows', async t => {
  const page = await readFile(new URL('../../docs/nodes.md', import.meta.url), 'utf8')
  for (const row of tableOfNodes()) t.ok(page.includes(row), row)
})
