/** `gatewayctl backup`, `restore` and `migrate`: work on the stores of a configuration, without the admin listener. */
import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import type { ConfiguredStores } from '../app/maintenance.ts'
import { printable } from '../lib/printable.ts'
import type { SchemaState } from '../stores/maintenance.ts'
import { CheckFailed, errorCode, Failure } from './io.ts'
import type { Open, Session } from './session.ts'

const POLL_MS = 250
const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 }

interface KeyOption {
  readonly withMasterKey?: boolean
}

async function storesOf({ config, io }: Session): Promise<ConfiguredStores> {
  const { configuredStores } = await import('../app/maintenance.ts')
  return configuredStores(config, io.env, io.cwd)
}

const keyOf = (file: string): string => `${file}.master.key`

/** Adds the three commands. */
export function addStores(program: Command, open: Open): void {
  program
    .command('backup')
    .description(
      'copy the database to a new file while the gateway runs; without the master key, which reads its secrets',
    )
    .argument('<file>', 'the new file')
    .option('--with-master-key', 'copy the master keys as well, to <file>.master.key; keep them apart from the copy')
    .action(async (name: string, { withMasterKey = false }: KeyOption, command: Command) => {
      const session = open(command)
      const { io, json, print } = session
      const file = resolve(io.cwd, name)
      const found = await storesOf(session)
      if (withMasterKey) await copyKeys(sourceOfKeys(found, io.env), keyOf(file))
      const bytes = await (await found.open()).backup(file)
      print(
        { file, bytes, masterKey: withMasterKey ? keyOf(file) : null },
        () => `${printable(name)}: ${bytes} bytes\n`,
      )
      if (!withMasterKey && !json) io.err('the master key is not in the copy; without it nobody reads sealed secrets\n')
    })
  program
    .command('restore')
    .description('put a backup in the place of the database, after checking it; the gateway must not run')
    .argument('<file>', 'the file that `backup` wrote')
    .option('--with-master-key', 'restore the master keys as well, from <file>.master.key')
    .action(async (name: string, { withMasterKey = false }: KeyOption, command: Command) => {
      const session = open(command)
      const file = resolve(session.io.cwd, name)
      const found = await storesOf(session)
      const { database, keys } = found
      if (withMasterKey) await stat(sourceOfKeys({ keys: keyOf(file) }, session.io.env)).catch(cannotRead(keyOf(file)))
      const earlier = (await (await found.open()).restore(file)) ?? null
      if (withMasterKey) await replaceKeys(keyOf(file), keys)
      session.print({ database, earlier }, () => {
        return `restored ${printable(database)}${earlier ? `; the earlier one is ${printable(earlier)}` : ''}\n`
      })
    })
  program
    .command('migrate')
    .description('bring the schema of the database up to date; a start does the same')
    .option('--check', 'change nothing; exit with status 1 when the schema is behind')
    .option(
      '--wait <time>',
      'change nothing; wait at most this time, such as 120s, until the schema is current',
      timeOf,
    )
    .action(async ({ check, wait }: { readonly check?: boolean; readonly wait?: number }, command: Command) => {
      const session = open(command)
      const stores = await (await storesOf(session)).open()
      const reads = check === true || wait !== undefined
      const state = reads ? await waited(() => stores.schema(), wait ?? 0) : await stores.migrate()
      session.print({ ...state, current: !isBehind(state) || !reads }, shown => {
        if (!isBehind(state)) return `${printable(stores.name)}: schema ${state.present} is current\n`
        const before = state.present === undefined ? 'no database' : `schema ${state.present}`
        return `${printable(stores.name)}: ${before}, ${shown.current ? 'now' : 'this version needs'} schema ${state.known}\n`
      })
      if (reads && isBehind(state)) throw new CheckFailed()
    })
}

/** A newer schema is not behind: stores that several versions share allow one. */
const isBehind = ({ present, known }: SchemaState): boolean => present === undefined || present < known

/** The first state that is current, or the one after `forMs`. */
async function waited(read: () => Promise<SchemaState>, forMs: number): Promise<SchemaState> {
  const end = performance.now() + forMs
  for (;;) {
    const state = await read()
    if (!isBehind(state) || performance.now() >= end) return state
    await new Promise(resolve => setTimeout(resolve, Math.min(POLL_MS, forMs)))
  }
}

function timeOf(text: string): number {
  const [, count, unit] = /^(\d{1,5})([smh])$/.exec(text) ?? []
  if (count === undefined || unit === undefined) throw new InvalidArgumentError(`"${text}" is not a time such as 120s`)
  return Number(count) * UNIT_MS[unit]!
}

/** Throws a Failure where the environment holds the keys: they are in no file. */
function sourceOfKeys({ keys }: Pick<ConfiguredStores, 'keys'>, env: Session['io']['env']): string {
  if (!env.GATEWAY_MASTER_KEY) return keys
  throw new Failure('the master keys are in GATEWAY_MASTER_KEY and in no file; leave --with-master-key out')
}

const cannotRead = (file: string) => (thrown: unknown) => {
  throw new Failure(`cannot read the master keys ${printable(file)} (${errorCode(thrown)})`)
}

async function copyKeys(from: string, to: string): Promise<void> {
  try {
    await writeFile(to, await readFile(from), { flag: 'wx', mode: 0o600 })
  } catch (thrown) {
    throw new Failure(`cannot copy the master keys ${printable(from)} to ${printable(to)} (${errorCode(thrown)})`)
  }
}

/** Keeps the present keys beside the new ones. */
async function replaceKeys(from: string, to: string): Promise<void> {
  const part = `${to}.restore`
  await copyKeys(from, part)
  const isThere = await stat(to).then(
    () => true,
    () => false,
  )
  if (isThere) await rename(to, `${to}.before-${new Date().toISOString().replace(/[-:]|\.\d+/g, '')}`)
  await rename(part, to)
}
