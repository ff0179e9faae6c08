/** Which tests there are, and which of them share a process. */
import { readdirSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export const test = fileURLToPath(new URL('.', import.meta.url))

/** Files and folders that need the built gateway, other programs or the machine: each file has a process of its own. */
const WHOLE = [
  'e2e',
  'cli',
  'workers',
  'bench',
  'helpers',
  'nightly',
  'validation',
  'stores/scale.test.ts',
  'package.test.ts',
]
/** Unit tests that change what all of a process shares. */
const ALONE = ['stores/workers.test.ts', 'policy/stores.test.ts']

const slashed = path => path.split(sep).join('/')
const isWhole = path => WHOLE.some(name => slashed(path) === name || slashed(path).startsWith(`${name}/`))

/** All test files, relative to `test`. @returns {string[]} */
export const files = () =>
  readdirSync(test, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.test.ts'))
    .sort()

/** @param {string | undefined} kind `unit`, `e2e`, or all where it is left out */
export const filesOf = kind => files().filter(path => kind === undefined || isWhole(path) === (kind === 'e2e'))

/**
 * Files that get a process of their own, and those that share one, by the name of its entry.
 * @param {readonly string[]} paths
 */
export function grouped(paths) {
  const alone = []
  const together = {}
  for (const path of paths) {
    if (isWhole(path) || ALONE.includes(slashed(path))) alone.push(path)
    else {
      const folder = dirname(path)
      const name = folder === '.' ? 'static' : folder.split(sep)[0]
      together[name] ??= []
      together[name].push(path)
    }
  }
  return { alone, together }
}

/** What a command line names: files or folders, from the root of the project. */
export const named = paths =>
  paths.flatMap(path => {
    const inTest = path.replace(/^\.?\/?test\/?/, '')
    return inTest.endsWith('.ts') ? [inTest] : files().filter(file => file.startsWith(join(inTest, sep)))
  })
