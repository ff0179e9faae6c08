/** What npm makes of the package: what it installs, what it packs, and what may be imported from it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'))

t.test('npm ci installs one SQLite driver, which one is up to the version of Node', async t => {
  // No release of better-sqlite3 12 says that it is for Node 20 alone, so the lock says so: npm leaves out an optional
  // package whose `engines` there do not fit. Write it again after an update of that package.
  const { packages } = read('package-lock.json')
  const engines = (name: string) => {
    const { optional, engines } = packages[`node_modules/${name}`]
    return { optional, node: engines.node }
  }
  t.strictSame(engines('better-sqlite3'), { optional: true, node: '<22' })
  t.strictSame(engines('better-sqlite3-napi'), { optional: true, node: '>=22' })
})
