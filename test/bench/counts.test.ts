/** Whether a request costs more than it did: counts, which are the same on a busy machine, and one ratio, which is judged at night. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { judged, timing } from '../helpers/figure.ts'

interface Results {
  readonly counts: readonly { readonly name: string; readonly counts: Readonly<Record<string, number>> }[]
  readonly loads?: readonly { readonly rows: readonly { readonly ratio: { readonly median: number } | null }[] }[]
}

/**
 * Per request. What V8 allocates was counted on Node 20; another one makes other objects of the same code. Not among
 * them is how often files are written: threads that wake each other are counted as writes too, and come as they like.
 */
const expected: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  unary: {
    ...{ allocatedBytes: 123_000, statements: 11, transactions: 2 },
    ...{ socketWrites: 2, socketBytes: 3_600, fileBytes: 37_700 },
  },
  'stream, chunk by chunk': {
    ...{ allocatedBytes: 670_000, statements: 11, transactions: 2 },
    ...{ socketWrites: 66, socketBytes: 18_400, fileBytes: 38_600 },
  },
  'stream, in one piece': {
    ...{ allocatedBytes: 228_000, statements: 11, transactions: 2 },
    ...{ socketWrites: 3, socketBytes: 18_000, fileBytes: 38_300 },
  },
  'Anthropic stream, chunk by chunk': {
    ...{ allocatedBytes: 661_000, statements: 11, transactions: 2 },
    ...{ socketWrites: 66, socketBytes: 19_200, fileBytes: 37_700 },
  },
}
const MARGIN = 1.15
const MARGIN_ELSEWHERE = 1.5
/** CPU time of a unary request over the floor's; a busy machine moves it by a fifth. */
const MAX_RATIO = 3.5

const linux = process.platform === 'linux' ? {} : { skip: 'counts are read from /proc' }
const known = process.version.startsWith('v20.')

async function measured(): Promise<Results> {
  const bench = fileURLToPath(new URL('run.mjs', import.meta.url))
  const args = ['--only', 'counts', ...(judged ? ['--only', 'unary'] : []), '--quick', '--json']
  // The test runner loads itself into every process that has its environment, and would be counted.
  const { stdout } = await promisify(execFile)('env', ['-i', process.execPath, bench, ...args])
  return JSON.parse(stdout)
}

/** The work of a rare timer may come among the requests, and not into as much time without: it does so once. */
const TRIES = 3

const mostOf = (what: string, was: number): number =>
  was * (known || what !== 'allocatedBytes' ? MARGIN : MARGIN_ELSEWHERE)

/** The lower counts of two measurements. */
const least = (one: Results['counts'], other: Results['counts']): Results['counts'] =>
  one.map(({ name, counts }, at) => {
    const again = other[at]!.counts
    const lower = Object.entries(counts).map(([what, count]) => [what, Math.min(count, again[what]!)])
    return { name, counts: Object.fromEntries(lower) }
  })

const exceeds = (counts: Results['counts']): boolean =>
  counts.some(({ name, counts: found }) =>
    Object.entries(expected[name] ?? {}).some(([what, was]) => found[what]! > mostOf(what, was)),
  )

t.test('a request costs no more than it did', linux, async t => {
  const { counts: first, loads } = await measured()
  t.strictSame(
    first.map(({ name }) => name),
    Object.keys(expected),
  )
  let counts = first
  for (let tries = 1; tries < TRIES && exceeds(counts); tries++) counts = least(counts, (await measured()).counts)
  for (const { name, counts: found } of counts) {
    for (const [what, was] of Object.entries(expected[name] ?? {})) {
      const value = found[what] ?? Number.NaN
      t.ok(value > 0 && value <= mostOf(what, was), `${name}: ${what} ${value.toFixed(1)} of ${was}`)
      if (value < was / MARGIN) t.comment(`${name}: ${what} has fallen to ${value.toFixed(1)}; lower what is expected`)
    }
  }
  if (!judged) return
  const ratio = loads?.[0]?.rows[1]?.ratio?.median ?? Number.NaN
  timing(t, { id: 'bench', what: 'unary CPU over the floor', value: ratio, unit: '×', atMost: MAX_RATIO })
})
