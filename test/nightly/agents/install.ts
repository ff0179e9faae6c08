/**
 * Installs the newest clients of npm and of PyPI into a folder of the run, or into the one that `CLIENTS_FOLDER` names,
 * where what is there already stays as it is.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import type { Scope } from '../../helpers/child.ts'

const INSTALL_MS = 600_000
/** Several clients run on nothing older. */
const NODE = 'node@24'
const run = promisify(execFile)

export interface Installed {
  readonly folder: string
  /** Finds the programs that were installed, and the version of Node that they run on. */
  readonly path: string
  /** By package. */
  readonly versions: Readonly<Record<string, string>>
}

type Skipping = Scope & Pick<Test, 'plan' | 'comment'>

/** Plans no test, and says why, where the registry is out of reach. */
async function orSkip<T extends Pick<Installed, 'versions'>>(
  t: Skipping,
  install: () => Promise<T>,
): Promise<T | undefined> {
  try {
    const installed = await install()
    t.comment(JSON.stringify(installed.versions))
    return installed
  } catch (thrown) {
    t.plan(0, `the clients are missing: ${String(thrown).slice(0, 500)}`)
    return undefined
  }
}

export const npmClients = (t: Skipping, name: string, packages: readonly string[]): Promise<Installed | undefined> =>
  orSkip(t, async () => {
    const folder = await folderOf(t, name)
    const npm = async (prefix: string, path: string, wanted: readonly string[]) => {
      if (existsSync(join(prefix, 'node_modules'))) return
      const args = ['install', '--no-save', '--loglevel=error', '--prefix', prefix, ...wanted]
      await run('npm', args, { env: { ...process.env, PATH: path }, timeout: INSTALL_MS })
    }
    const node = join(folder, 'node')
    await npm(node, process.env.PATH ?? '', [NODE])
    const nodePath = [join(node, 'node_modules/node/bin'), process.env.PATH].join(delimiter)
    const clients = join(folder, 'npm')
    // npm takes an older version where the newest does not name the running Node, unless it is named.
    await npm(
      clients,
      nodePath,
      packages.map(one => `${one}@latest`),
    )
    const listed = await run('npm', ['ls', '--json', '--depth=0', '--prefix', clients], {
      env: { ...process.env, PATH: nodePath },
    }).catch((thrown: { stdout: string }) => thrown)
    const { dependencies = {} } = JSON.parse(listed.stdout) as { dependencies?: Record<string, { version: string }> }
    return {
      folder: clients,
      path: [join(clients, 'node_modules/.bin'), nodePath].join(delimiter),
      versions: Object.fromEntries(packages.map(one => [one, dependencies[one]?.version ?? 'missing'])),
    }
  })

/** The interpreter that has them, in an environment of its own. */
export const pythonClients = (t: Skipping, name: string, packages: readonly string[]) =>
  orSkip(t, async () => {
    const folder = join(await folderOf(t, name), 'venv')
    const python = join(folder, 'bin/python')
    if (!existsSync(python)) {
      await run('python3', ['-m', 'venv', folder])
      await run(python, ['-m', 'pip', 'install', '--quiet', '--no-input', ...packages], { timeout: INSTALL_MS })
    }
    const { stdout } = await run(python, ['-m', 'pip', 'list', '--format=json', '--disable-pip-version-check'])
    const listed = JSON.parse(stdout) as { name: string; version: string }[]
    const versions = packages.map(given => {
      const plain = given.replace(/\[.*/, '')
      return [plain, listed.find(one => one.name === plain)?.version ?? 'missing']
    })
    return { python, versions: Object.fromEntries(versions) }
  })

async function folderOf(t: Scope, name: string): Promise<string> {
  const kept = process.env.CLIENTS_FOLDER
  if (kept) return join(kept, name)
  const folder = await mkdtemp(join(tmpdir(), `clients-${name}-`))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}
