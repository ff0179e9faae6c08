/** `gatewayctl backup`, `restore`, `migrate` and `stores copy`: work on stores without the admin listener. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Command, InvalidArgumentError } from 'commander'
import { durationOf } from '../admin/arguments.ts'
import type { ConfiguredStores } from '../app/maintenance.ts'
import { printable } from '../lib/printable.ts'
import type { SchemaState } from '../stores/maintenance.ts'
import { CheckFailed, errorCode, Failure } from './io.ts'
import type { Open, Session } from './session.ts'

const POLL_MS = 250

interface KeyOption {
  readonly withMasterKey?: boolean
}

async function storesOf({ config, io }: Session): Promise<ConfiguredStores> {
  const { configuredStores } = await import('../app/maintenance.ts')
  return configuredStores(config, io.env, io.cwd)
}

const keyOf = (file: string): string => `${file}.master.key`

/** Adds `backup`, `restore` and `migrate`. */
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
      const bytes = await cleaned(
        async () => (await found.open()).backup(file),
        withMasterKey ? keyOf(file) : undefined,
      )
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
      const staged = withMasterKey ? await stageKeys(keyOf(file), sourceOfKeys(found, session.io.env)) : undefined
      const earlier = (await cleaned(async () => (await found.open()).restore(file), staged)) ?? null
      if (staged) await replaceKeys(staged, keys)
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

/** Adds `stores copy`. */
export function addCopy(program: Command, open: Open): void {
  program
    .command('stores')
    .description('move the stores of a gateway')
    .command('copy')
    .description('copy a SQLite database into an empty PostgreSQL database; no gateway may run on either')
    .requiredOption('--from <sqlite:path>', 'the database file', sqliteOf)
    .requiredOption('--to <postgres:url>', 'the database, such as postgres://user@host/gateway', postgresOf)
    .action(async ({ from, to }: { readonly from: string; readonly to: string }, command: Command) => {
      const { io, json, print } = open(command)
      const { copyStores } = await import('../stores/open.ts')
      const rows = await copyStores({ sqlite: resolve(io.cwd, from) }, { postgres: to }, (table, done, all) => {
        if (!json) io.err(`${table}: ${done} of ${all} rows\n`)
      })
      print({ rows }, () => {
        const keys = printable(resolve(io.cwd, dirname(from), 'master.key'))
        return `copied; the books agree. Set GATEWAY_MASTER_KEY of each node as it was, or to what ${keys} holds\n`
      })
    })
}

function sqliteOf(text: string): string {
  if (!text.startsWith('sqlite:')) throw new InvalidArgumentError('it is sqlite:PATH')
  return text.slice('sqlite:'.length)
}

/** An address that stands alone names its kind already. */
function postgresOf(text: string): string {
  const url = text.replace(/^postgres:(?!\/\/)/, '')
  if (!/^postgres(?:ql)?:\/\//.test(url)) throw new InvalidArgumentError('it is postgres:URL')
  return url
}

/** A newer schema is not behind: stores that several versions share allow one. */
const isBehind = ({ present, known }: SchemaState): boolean => present === undefined || present < known

/** The first state that is current, or the one after `forMs`. */
async function waited(read: () => Promise<SchemaState>, forMs: number): Promise<SchemaState> {
  const end = performance.now() + forMs
  for (;;) {
    const state = await read()
    if (!isBehind(state) || performance.now() >= end) return state
    await wait(Math.min(POLL_MS, forMs))
  }
}

function timeOf(text: string): number {
  if (/^\d{1,5}[smh]$/.test(text)) return durationOf(text)
  throw new InvalidArgumentError(`"${text}" is not a time such as 120s`)
}

/** Throws a Failure where the environment holds the keys: they are in no file. */
function sourceOfKeys({ keys }: Pick<ConfiguredStores, 'keys'>, env: Session['io']['env']): string {
  if (!env.GATEWAY_MASTER_KEY) return keys
  throw new Failure('the master keys are in GATEWAY_MASTER_KEY and in no file; leave --with-master-key out')
}

/** Resolves as `work` does; removes `file` when it fails. */
async function cleaned<T>(work: () => Promise<T>, file: string | undefined): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    if (file !== undefined) await rm(file)
    throw thrown
  }
}

async function copyKeys(from: string, to: string): Promise<void> {
  try {
    await writeFile(to, await readFile(from), { flag: 'wx', mode: 0o600 })
  } catch (thrown) {
    throw new Failure(`cannot copy the master keys ${printable(from)} to ${printable(to)} (${errorCode(thrown)})`)
  }
}

/** Copies the keys beside their place, before the database changes. Resolves with the copy. */
async function stageKeys(from: string, to: string): Promise<string> {
  const part = `${to}.restore`
  await rm(part, { force: true })
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  await copyKeys(from, part)
  return part
}

/** Keeps the present keys beside the new ones. */
async function replaceKeys(part: string, to: string): Promise<void> {
  const aside = `${to}.before-${new Date().toISOString().replace(/[-:]|\.\d+/g, '')}`
  await rename(to, aside).catch((thrown: unknown) => {
    if (errorCode(thrown) !== 'ENOENT') throw thrown
  })
  await rename(part, to)
}
