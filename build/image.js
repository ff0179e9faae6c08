/**
 * `node build/image.js FOLDER`: writes what an image runs, after `npm run build`. `/app` has the package with its production
 * dependencies, `/usr/local/bin` the two commands, `/data` is the volume. `SOURCE_DATE_EPOCH` dates all files.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const [target] = process.argv.slice(2)
if (!target) throw new Error('usage: node build/image.js FOLDER')
const seconds = Number(process.env.SOURCE_DATE_EPOCH || 0)
const app = join(target, 'app')
/** Types and source maps of dependencies, and what the driver of SQLite was compiled from. */
const UNUSED =
  /node_modules\/(?:.*\.(?:map|[mc]?ts)|better-sqlite3[^/]*\/(?:deps|src|build\/(?!Release$|Release\/[^/]+\.node$)).*)$/

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
const modules = Object.entries(packages).flatMap(([path, { dev, devOptional }]) =>
  path === '' || dev || devOptional ? [] : [path],
)

for (const path of ['bin', 'config', 'dist', 'providers.d', 'package.json', 'LICENSE', ...modules]) {
  const from = join(root, path)
  // Packages within a package are listed by themselves.
  const filter = source => !UNUSED.test(source) && !source.slice(from.length).includes('/node_modules')
  // Optional packages of other platforms are absent.
  if (existsSync(from)) cpSync(from, join(app, path), { recursive: true, filter })
}
const bin = join(target, 'usr/local/bin')
mkdirSync(bin, { recursive: true })
for (const name of ['gateway', 'gatewayctl']) {
  // The image has no `env`, and these names no extension: Node reads them as CommonJS.
  writeFileSync(join(bin, name), `#!/nodejs/bin/node\nimport('/app/bin/${name}.js')\n`)
}
mkdirSync(join(target, 'etc/model-gateway'), { recursive: true })
mkdirSync(join(target, 'data'), { recursive: true })
settle(target, true)
// The container runs as any user.
chmodSync(join(target, 'data'), 0o1777)

/** Gives everybody the right to read, and every file the same date, whatever the machine's are. */
function settle(path, isFolder) {
  if (isFolder) {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (!entry.isSymbolicLink()) settle(join(path, entry.name), entry.isDirectory())
    }
  }
  chmodSync(path, isFolder || path.startsWith(bin) ? 0o755 : 0o644)
  lutimesSync(path, seconds, seconds)
}
