/**
 * Writes `npm-shrinkwrap.json` for a packed file: the lock without what only development needs. `--remove` deletes it,
 * `--print` prints it instead.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'

const root = new URL('../', import.meta.url)
const target = new URL('npm-shrinkwrap.json', root)

function shrinkwrap() {
  const lock = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8'))
  const { '': own, ...rest } = lock.packages
  const { devDependencies: _, ...published } = own
  const packages = Object.entries(rest).filter(([, { dev, devOptional }]) => !dev && !devOptional)
  const pinned = { ...lock, packages: { '': published, ...Object.fromEntries(packages) } }
  return `${JSON.stringify(pinned, null, 2)}\n`
}

const [option] = process.argv.slice(2)
if (option === '--remove') rmSync(target, { force: true })
else if (option === '--print') process.stdout.write(shrinkwrap())
else writeFileSync(target, shrinkwrap())
