/**
 * Compiles the tests to JavaScript once, into a folder of the run, in place of every process doing so. Unit tests of one
 * folder of `test` share a process, whose entry runs them.
 */
import { existsSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, transform } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const test = join(root, 'test')
const runs = join(root, '.test')
export const out = join(runs, String(process.pid))
/** Forked by tests, which find them in the folder that `COMPILED_TESTS` names. */
const CHILDREN = ['helpers/store-child.ts', 'policy/child.ts', 'nightly/prober.ts', 'nightly/hot-node.ts']
/** How an entry says which test a file's own `t` is. */
const CURRENT = 'gateway.test'

/**
 * @param {readonly string[]} alone files that get a process of their own, relative to `test`
 * @param {Record<string, readonly string[]>} together files by the name of the entry that runs them
 * @param {number} timeoutMs of each file
 * @returns {Promise<string[]>} the entries to run
 */
export async function compile(alone, together, timeoutMs) {
  const shared = Object.values(together).flat()
  await clean()
  await build({
    entryPoints: [...alone, ...shared, ...CHILDREN].map(path => join(test, path)),
    outdir: out,
    outbase: test,
    bundle: true,
    splitting: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    plugins: [sources, tapOf(new Set(shared.map(path => join(test, path))))],
    logLevel: 'warning',
  })
  for (const [name, files] of Object.entries(together))
    await writeFile(join(out, `${name}.js`), entry(files, timeoutMs))
  return [...alone.map(path => compiled(path)), ...Object.keys(together).map(name => join(out, `${name}.js`))]
}

/** Removes the folders of runs that have ended, and this one's. */
export async function clean() {
  const pids = existsSync(runs) ? await readdir(runs) : []
  const ended = pids.filter(pid => Number(pid) === process.pid || !isAlive(Number(pid)))
  await Promise.all(ended.map(pid => rm(join(runs, pid), { recursive: true, force: true })))
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch ({ code }) {
    return code === 'EPERM'
  }
}

const compiled = path => join(out, path.replace(/\.ts$/, '.js'))

/** One file after another, each as one test. */
const entry = (files, timeoutMs) => `import t from 'tap'
for (const file of ${JSON.stringify(files)}) {
  await t.test(file, { timeout: ${timeoutMs} }, async t => {
    globalThis[Symbol.for('${CURRENT}')] = t
    await import('./' + file.replace(/ts$/, 'js'))
  })
}
`

/** Where a file stands is where its source does. */
const sources = {
  name: 'sources',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\](src|plugins|test)[/\\].*\.ts$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), {
        loader: 'ts',
        target: 'node20',
        sourcefile: path,
        sourcemap: 'inline',
        define: {
          'import.meta.url': JSON.stringify(pathToFileURL(path).href),
          'import.meta.dirname': JSON.stringify(dirname(path)),
        },
      })
      return { contents: code, loader: 'js' }
    })
  },
}

/** The `t` of files that share a process is the test that their entry made for them. */
const tapOf = shared => ({
  name: 'tap-of',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^tap$/ }, ({ importer, namespace }) =>
      namespace === 'file' && shared.has(importer)
        ? { path: relative(test, importer), namespace: 'tap-of' }
        : undefined,
    )
    onLoad({ filter: /./, namespace: 'tap-of' }, () => ({
      contents: `export default globalThis[Symbol.for('${CURRENT}')]`,
      loader: 'js',
    }))
  },
})
