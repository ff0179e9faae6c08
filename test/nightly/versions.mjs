/**
 * `node test/nightly/versions.mjs VERSION [PATH…]`: tests on another version of Node, which npm's package `node` brings.
 * Without paths it is the whole suite, in a copy of the tree that `npm ci` has installed on that version; with paths, files
 * or folders, it is those tests in this tree, for what needs no native module.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const MINUTE = 60_000
const INSTALL_MS = 10 * MINUTE
const SUITE_MS = 60 * MINUTE

/** @param {string} version @param {readonly string[]} [paths] @returns {Promise<boolean>} whether all passed */
export async function passesOn(version, paths = []) {
  const folder = await mkdtemp(join(tmpdir(), `node-${version}-`))
  try {
    await run('npm', ['install', '--no-save', '--loglevel=error', '--prefix', folder, `node@${version}`], {
      cwd: folder,
      ms: INSTALL_MS,
    })
    const PATH = [join(folder, 'node_modules/node/bin'), process.env.PATH].join(delimiter)
    const env = { ...process.env, PATH }
    await run('node', ['--version'], { cwd: folder, env, ms: MINUTE })
    const tree = paths.length > 0 ? root : await installed(join(folder, 'tree'), env)
    await run('node', ['test/run.mjs', ...paths], { cwd: tree, env, ms: SUITE_MS })
    return true
  } catch (thrown) {
    console.error(`Node ${version}: ${thrown instanceof Error ? thrown.message : thrown}`)
    return false
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Copies what belongs to the project. */
async function installed(tree, env) {
  const listed = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    ms: MINUTE,
    output: true,
  })
  for (const name of listed.split('\0')) {
    if (name && existsSync(join(root, name))) await cp(join(root, name), join(tree, name))
  }
  await run('npm', ['ci'], { cwd: tree, env, ms: INSTALL_MS })
  return tree
}

/** Resolves with what it wrote, where that is wanted; rejects when it fails or takes longer than `ms`. */
async function run(command, args, { cwd, env = process.env, ms, output = false }) {
  const child = spawn(command, args, {
    cwd,
    env,
    stdio: ['ignore', output ? 'pipe' : 'inherit', 'inherit'],
    timeout: ms,
  })
  let text = ''
  child.stdout?.setEncoding('utf8').on('data', piece => {
    text += piece
  })
  const end = await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(code ?? signal))
  })
  if (end !== 0) throw new Error(`${command} ended with ${end}`)
  return text
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [version, ...paths] = process.argv.slice(2)
  if (!version) throw new Error('usage: node test/nightly/versions.mjs VERSION [PATH…]')
  process.exitCode = (await passesOn(version, paths)) ? 0 : 1
}
