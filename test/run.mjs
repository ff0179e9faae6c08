/**
 * `node test/run.mjs [unit | e2e | PATH…]`: compiles the tests, runs them, and prints what failed and what took longest.
 * `--record` keeps the durations in `docs/tests.md`, by which the next run begins with the longest.
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { clean, compile, out } from './compile.mjs'
import { Results } from './results.mjs'
import { filesOf, grouped, named } from './suite.mjs'

const KEPT = fileURLToPath(new URL('../docs/tests.md', import.meta.url))
const SLOWEST = 15
/** Entries of a whole suite that failed run once more, alone, where no more than these failed. */
const AGAIN_MAX = 3
const FLAGS = [
  '--enable-source-maps',
  ...['no-async-hooks.mjs', 'quick-asserts.mjs'].flatMap(name => ['--import', new URL(name, import.meta.url).href]),
]
const HEAD = `# How long the tests take

\`node test/run.mjs --record\` writes this page: seconds on two cores, SECONDS in all. An entry without a folder runs the
files of one folder, or of one of the \`families\` in \`test/suite.mjs\`, in one process.

| Test | Seconds |
| --- | --- |
`
const STDERR = 20_000
/** Seconds of a file without a record: one that turns out to be long does not end last. */
const UNKNOWN = 60

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Two to a core: many tests wait for half of their time. */
    jobs: { type: 'string', default: String(2 * availableParallelism()) },
    /** Seconds that a file may take. */
    timeout: { type: 'string', default: '300' },
    record: { type: 'boolean', default: false },
    /** Prints all that tests say. */
    verbose: { type: 'boolean', default: false },
  },
})
const began = performance.now()
const [kind] = positionals
const whole = kind === undefined || kind === 'unit' || kind === 'e2e'
const chosen = whole ? filesOf(kind) : named(positionals)
const timeoutMs = Number(values.timeout) * 1000

const sum = new Results()
const failed = []
/** Entries that failed and then passed alone: each is a defect, and is printed. */
const unstable = []
const { alone, together } = grouped(chosen)
const entries = await compile(alone, together, timeoutMs)
const kept = recorded()
const waiting = entries.toSorted((a, b) => expected(nameOf(b)) - expected(nameOf(a)))
await Promise.all(Array.from({ length: Number(values.jobs) }, work))
const repeats = whole && failed.length <= AGAIN_MAX
for (const { entry, results } of failed) sum.add(repeats ? await again(entry, results) : results)
await clean()
report()

async function work() {
  for (let entry = waiting.shift(); entry; entry = waiting.shift()) {
    const results = await run(entry)
    if (results.fail > 0) failed.push({ entry, results })
    else sum.add(results)
  }
}

/** Runs an entry that failed once more, when nothing else runs. */
async function again(entry, first) {
  const results = await run(entry)
  if (results.fail === 0) unstable.push(...first.failures)
  return results
}

function nameOf(entry) {
  return relative(out, entry).replace(/js$/, 'ts')
}

/** Seconds that an entry took, or its files did where it is new. */
function expected(name) {
  const files = together[name.replace(/\.ts$/, '')] ?? [name]
  return kept.get(name) ?? files.reduce((sum, file) => sum + (kept.get(file) ?? UNKNOWN), 0)
}

/** One process. */
async function run(entry) {
  const name = nameOf(entry)
  const from = performance.now()
  const results = new Results()
  const ms = timeoutMs * (together[name.replace('.ts', '')]?.length ?? 1)
  const env = { ...process.env, TAP_TIMEOUT: String(ms / 1000), COMPILED_TESTS: out }
  const child = spawn(process.execPath, [...FLAGS, entry], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), ms)
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    said = (said + text).slice(-STDERR)
  })
  if (values.verbose) child.stdout.pipe(process.stdout)
  const parser = results.parser(name)
  const complete = new Promise(resolve => parser.on('complete', resolve))
  child.stdout.pipe(parser)
  const code = await new Promise(resolve => child.once('close', (code, signal) => resolve(code ?? signal)))
  clearTimeout(timer)
  const { ok } = await complete
  if ((code !== 0 || !ok) && results.fail === 0) results.failed([name], `It ended with ${code}.`)
  if (results.total === 0) results.failed([name], 'It asserted nothing.')
  if (results.fail > 0 && said) results.failures.push(`standard error of ${name}:\n${said}`)
  const seconds = (performance.now() - from) / 1000
  results.times.set(name, seconds)
  console.log(`${results.fail > 0 ? 'FAILED' : 'passed'} ${format(seconds)} s  ${name}`)
  return results
}

function format(seconds) {
  return seconds.toFixed(1).padStart(6)
}

function report() {
  const { total, pass, fail, skip, failures, times } = sum
  const sorted = [...times].sort(([, a], [, b]) => b - a)
  for (const failure of failures) console.log(`\n${failure}`)
  for (const failure of unstable) console.log(`\nunstable, passed alone: ${failure}`)
  console.log(
    `\n${sorted
      .slice(0, SLOWEST)
      .map(([name, seconds]) => `${format(seconds)} s  ${name}`)
      .join('\n')}`,
  )
  const seconds = Math.round((performance.now() - began) / 1000)
  if (values.record) {
    const rows = sorted.map(([name, seconds]) => `| \`${name}\` | ${seconds.toFixed(1)} |`)
    writeFileSync(KEPT, `${HEAD.replace('SECONDS', String(seconds))}${rows.join('\n')}\n`)
  }
  console.log(`\n# { total: ${total}, pass: ${pass}, fail: ${fail}, skip: ${skip} } in ${seconds} s`)
  process.exitCode = fail > 0 ? 1 : 0
}

function recorded() {
  const rows = readFileSync(KEPT, 'utf8').matchAll(/^\| `(.*)` \| ([\d.]+) \|$/gm)
  return new Map([...rows].map(([, name, seconds]) => [name, Number(seconds)]))
}
