// Bundles the server and gatewayctl into dist (one file loads in a third of the time of some three hundred), parses the
// shipped YAML, compiles the schemas, and writes the types of what plugins import.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** The sockets of undici without its fetch, its caches and its mocks: a third of all that was loaded at a start. */
const sockets = fileURLToPath(new URL('build/undici.js', import.meta.url))
/** Half of what the first call of an MCP tool loaded was a compiler of schemas. */
const validator = fileURLToPath(new URL('build/mcp-validator.js', import.meta.url))
const replaced = (filter, path) => ({
  name: path,
  setup: build => build.onResolve({ filter }, () => ({ path })),
})

await rm('dist', { recursive: true, force: true })
const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript-7/package.json')))
const types = once(spawn(process.execPath, [tsc, '-p', 'build'], { stdio: 'inherit' }), 'close')
await build({
  // All stand in one folder, so that a shared chunk finds the threads and loader hooks beside itself.
  entryPoints: Object.fromEntries(
    [
      'main',
      'cli',
      'plugin',
      'app/worker',
      'app/check',
      'app/prebuild',
      'app/plugin-imports',
      'app/parse-thread',
      'app/heal-thread',
      'app/plugin-loader-hooks',
    ].map(name => [basename(name), `src/${name}.ts`]),
  ),
  outdir: 'dist/src',
  bundle: true,
  // Shared modules become shared chunks: an operator's plugin gets the same GatewayError as the server.
  splitting: true,
  chunkNames: '[name]-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // The readers of media are loaded by the first request that carries some; pg, ioredis and the keys of AWS where they are
  // configured.
  external: [
    '@aws-sdk/*',
    '@opentelemetry/*',
    ...['ajv', 'better-sqlite3', 'better-sqlite3-napi', 'image-size', 'ioredis', 'music-metadata', 'pg', 'strtok3'],
  ],
  plugins: [replaced(/^undici$/, sockets), replaced(/\/ajv-provider\.js$/, validator)],
  banner: {
    js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
  },
  logLevel: 'warning',
})

// One character beyond ASCII, though it be in a comment, and V8 keeps all of a module's text in twice the memory. The
// bundler escapes those of strings.
for (const name of await readdir('dist/src')) {
  const path = `dist/src/${name}`
  const text = await readFile(path, 'utf8')
  const ascii = text.replace(/^\s*(\/\/|[/(]?\*).*$/gm, comment => comment.replace(/[\u0080-\uffff]/g, '?'))
  const strange = /^.*[\u0080-\uffff].*$/m.exec(ascii)?.[0]
  if (strange) throw new Error(`${path} holds more than ASCII: ${strange.trim().slice(0, 200)}`)
  await writeFile(path, ascii)
}

await cp('src/ui/static', 'dist/src/static', { recursive: true })

const { driverProblem, writeParsed, writeSchemas, writeValidators } = await import('./dist/src/prebuild.js')
const files = ['config/gateway.yaml']
for (const folder of ['config/models.d', 'providers.d']) {
  for (const name of await readdir(folder)) if (name.endsWith('.yaml')) files.push(`${folder}/${name}`)
}
await writeParsed(files, 'dist/src/parsed.json')
await writeValidators('config/gateway.yaml', 'dist/src/validators.cjs')
if (process.argv.includes('--schemas')) {
  await writeSchemas('build/reference', 'config/schema', 'docs/reference')
  await import('./build/grafana.js')
}

const [code] = await types
if (code !== 0) throw new Error(`tsc -p build ended with ${code}`)

// npm says nothing of an optional package that it could not build.
const problem = await driverProblem()
if (problem) console.warn(`\nThe gateway is built, but cannot start. ${problem}\n`)
