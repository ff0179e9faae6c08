/** What npm makes of the package: what it installs, what it packs, and what may be imported from it. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'

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

t.test('a packed file pins what it installs, with checksums, and says where it was built', t => {
  const { files, scripts, publishConfig, dependencies, optionalDependencies } = read('package.json')
  t.ok(files.includes('npm-shrinkwrap.json'))
  t.match(scripts, { prepack: 'node build/shrinkwrap.js', postpack: 'node build/shrinkwrap.js --remove' })
  t.strictSame(publishConfig, { provenance: true })
  const { packages }: { packages: Record<string, { integrity?: string; dev?: boolean }> } = JSON.parse(
    execFileSync(process.execPath, [join(root, 'build/shrinkwrap.js'), '--print'], { encoding: 'utf8' }),
  )
  const { '': own, ...pinned } = packages
  t.match(own, { dependencies, optionalDependencies, devDependencies: undefined })
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies }))
    t.ok(pinned[`node_modules/${name}`], name)
  const lock = read('package-lock.json').packages
  for (const [path, one] of Object.entries(pinned)) {
    t.match(one, { integrity: /^sha512-/, dev: undefined }, path)
    t.strictSame(one, lock[path], path)
  }
  t.end()
})

t.test('every dependency is imported, or run by a script of the package', async t => {
  const { dependencies, optionalDependencies, devDependencies, scripts } = read('package.json')
  const folders = ['src', 'plugins', 'test', 'build', 'bin']
  const files = folders.flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(name => /\.(?:[mc]?js|ts)$/.test(name))
      .map(name => join(folder, name)),
  )
  const texts = [...files, 'build.mjs'].map(name => readFileSync(join(root, name), 'utf8'))
  const run = Object.values(scripts).join(' ')
  const isUsed = (name: string) => {
    // Types come with what they describe, and a formatter is run by its short name.
    const base = name.replace(/^@types\/(?=.)/, '').replace(/^@biomejs\//, '')
    if (base === 'node' || run.includes(base)) return true
    // Several versions of one package are imported by their number: `ai-${major}`.
    const spellings = [`'${base}'`, `'${base}/`, `\`${base.replace(/\d+$/, '')}\${`]
    return texts.some(text => spellings.some(spelling => text.includes(spelling)))
  }
  const all = Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies })
  t.ok(all.length > 20, `${all.length} dependencies`)
  t.strictSame(
    all.filter(name => !isUsed(name)),
    [],
  )
})

t.test('plugins in TypeScript find the types of what they import', async t => {
  const plugin = (
    word: string,
  ) => `import { type FilterFactory, GatewayError, type Plugin, s } from 'model-gateway/plugin'
    const facts = { status: 418, type: 'invalid_request_error', code: 'teapot', message: '' }
    const teapot: FilterFactory<{ word: string }> = {
      name: 'teapot',
      options: s.object({ word: s.string() }),
      create: options => ({
        handle(ex, next) {
          if (!ex.header('x-tea')) return next()
          throw new GatewayError({ ...facts, message: options.${word} })
        },
      }),
    }
    export const plugin: Plugin = { filters: [teapot] }`
  const { good, bad } = { good: plugin('word'), bad: plugin('work') }
  const dir = t.testdir({ 'good.ts': good, 'bad.ts': bad })
  const files = ['good.ts', 'bad.ts'].map(name => join(dir, name))
  const { NodeNext } = ts.ModuleKind
  const target = ts.ScriptTarget.ES2023
  // Without the types of browsers, which take most of the time and which a plugin does not need.
  const lib = ['lib.es2023.d.ts']
  const options = { module: NodeNext, target, lib, strict: true, noEmit: true, types: ['node'] }
  const program = ts.createProgram(files, options)
  const said = ts
    .getPreEmitDiagnostics(program)
    .map(({ file, messageText }) => [
      file?.fileName.slice(dir.length + 1),
      ts.flattenDiagnosticMessageText(messageText, '\n'),
    ])
  // TypeScript adds what may be meant, unless it has made too many such suggestions by then.
  t.match(said, [['bad.ts', /^Property 'work' does not exist on type '{ word: string; }'/]])
  t.equal(said.length, 1)
})
