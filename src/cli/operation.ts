/** `gatewayctl reload`, `check`, `config`, `health`, `drain` and `metrics`. */
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { table } from '../admin/command.ts'
import type { AdminContext } from '../admin/context.ts'
import type { ModelsCheck } from '../app/check-models.ts'
import { locateConfig } from '../config/locate.ts'
import { CheckFailed } from './io.ts'
import type { Open, Session } from './session.ts'
import type { SyncOptions } from './sync/command.ts'

type Reloaded = Awaited<ReturnType<AdminContext['reload']>>

/** Status of `/ready` while the gateway starts, drains or lacks its database. */
const NOT_READY = 503
interface Readiness {
  readonly status: string
  readonly reason?: string
}

const showReload = ({ changed, version, restartNeeded, warnings }: Reloaded): string =>
  [
    `${changed ? 'now running' : 'unchanged:'} version ${version}\n`,
    ...restartNeeded.map(file => `restart needed: ${file} has changed since it was loaded\n`),
    ...warnings.map(warning => `warning: ${warning}\n`),
  ].join('')

/** `check` reads files only; all others call the admin listener. */
export function addOperation(program: Command, open: Open): void {
  const add = (name: string, description: string, run: (session: Session) => Promise<void>) =>
    program
      .command(name)
      .description(description)
      .action((_, command) => run(open(command)))

  const reload = 'reload the configuration; an invalid one is rejected and the old one stays'
  add('reload', reload, async ({ admin, print }) => {
    print(await admin.json<Reloaded>('POST', '/reload'), showReload)
  })

  program
    .command('check')
    .description('check the configuration files without a running gateway')
    .option('--plugins', 'run the modules of catalog.plugins, which may do anything')
    .option('--secrets', 'read secrets by reference: run their commands, and ask secret managers')
    .option('--strict', 'exit with status 1 when there is a warning')
    .action(async (options: CheckOptions, command: Command) => {
      const { io, config, json, print } = open(command)
      const { path } = locateConfig(config, io.env, io.cwd)
      const { checkConfig } = await import('../app/check.ts')
      const summary = await checkConfig(resolve(io.cwd, path), options)
      const isUnread = options.secrets === true && summary.unread.length > 0
      print(summary, ({ version, providers, models, mappings }) => {
        if (isUnread) return ''
        const counts = `${providers} providers, ${models} models, ${mappings} offers`
        return `${path} is valid: version ${version}, ${counts}\n`
      })
      if (!json) {
        const { unpriced, warnings, unread } = summary
        if (unpriced.length > 0) io.err(`warning: no price is known for ${unpriced.join(', ')}\n`)
        for (const warning of warnings) io.err(`warning: ${warning}\n`)
        for (const line of unread) io.err(options.secrets ? `${line}\n` : `note: ${line}; --secrets reads it\n`)
      }
      if (isUnread) throw new CheckFailed()
      if (options.strict && summary.warnings.length > 0) throw new CheckFailed()
    })

  add('config', 'show the configuration in force, secrets as *** or as their references', async ({ admin, print }) => {
    const { stringify } = await import('./yaml.ts')
    print(await admin.json<unknown>('GET', '/config'), config => stringify(config))
  })
  add('health', 'exit with status 0 when the gateway is ready, else 1; needs no token', async ({ admin, print }) => {
    const state = await admin.json<Readiness>('GET', '/ready', undefined, NOT_READY)
    print(state, ({ status, reason }) => `${status}${reason ? `: ${reason}` : ''}\n`)
    if (state.status !== 'ready') throw new CheckFailed()
  })
  add('drain', 'refuse new requests, finish those in flight, then stop', async ({ admin, print }) => {
    const result = await admin.json<{ draining: true; inFlight: number }>('POST', '/drain')
    print(result, ({ inFlight }) => `draining; ${inFlight} in flight\n`)
  })
  add('metrics', 'show the metrics in the Prometheus text format', async ({ io, admin, json, print }) => {
    const text = await admin.text('GET', '/metrics')
    if (json) print(parseExposition(text), String)
    else io.out(text)
  })
}

/** Options of `check` and of `models check`. */
interface CheckOptions {
  readonly plugins?: boolean
  readonly secrets?: boolean
  readonly strict?: boolean
}

/** At most a century. */
function wholeDays(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError(`"${text}" is not a whole number of days`)
}

function showCheck({ models, providers, offers, warnings }: ModelsCheck): string {
  const counts = `${offers} offers of ${models} models by ${providers} providers`
  if (warnings.length === 0) return `no warnings: ${counts}\n`
  const rows = warnings.map(({ model, provider, warning, since }) => [model, provider, warning, since])
  return `${table(['model', 'provider', 'warning', 'since'], rows)}\n${warnings.length} warnings: ${counts}\n`
}

/** Adds `models sync`, which reads and writes files only. */
export function addModelsSync(program: Command, open: Open): void {
  program.commands
    .find(one => one.name() === 'models')!
    .command('sync')
    .description('compare the configuration files with a price list; needs no gateway')
    .requiredOption('--from <source>', "models.dev's api.json or LiteLLM's file of prices: a file, or its address")
    .option('--provider <id>', 'compare one provider only')
    .option('--plugins', 'run the modules of catalog.plugins, which may do anything')
    .option('--write', 'write what differs; prices that you wrote stay')
    .action(async (options: SyncOptions, command: Command) => {
      const { io, config, print } = open(command)
      const { sync, showSync } = await import('./sync/command.ts')
      print(await sync(options, { io, config }), showSync)
    })
}

/** Adds `models check`, which reads files only. */
export function addModelsCheck(program: Command, open: Open): void {
  program.commands
    .find(one => one.name() === 'models')!
    .command('check')
    .description('find old or missing prices and deactivated models in the configuration files; needs no gateway')
    .option('--older-than <days>', 'age from which a price is old', wholeDays, 90)
    .option('--plugins', 'run the modules of catalog.plugins, which may do anything')
    .option('--strict', 'exit with status 1 when there is a warning')
    .action(async (options: CheckOptions & { readonly olderThan: number }, command: Command) => {
      const { io, config, print } = open(command)
      const [{ readCatalog }, { checkModels }] = await Promise.all([
        import('../app/check.ts'),
        import('../app/check-models.ts'),
      ])
      const { path } = locateConfig(config, io.env, io.cwd)
      const { catalog } = await readCatalog(resolve(io.cwd, path), options)
      const checked = checkModels(catalog, options.olderThan, new Date().toISOString().slice(0, 10))
      print(checked, showCheck)
      if (options.strict && checked.warnings.length > 0) throw new CheckFailed()
    })
}

/** One line of the text. */
interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** A string for values that JSON cannot represent: `NaN`, `+Inf`, `-Inf`. */
  readonly value: number | string
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? +(\S+)/
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g

/**
 * Reads Prometheus' text format: samples in their order, without comments and unreadable lines. Source: "Exposition
 * formats" of the Prometheus documentation.
 */
export function parseExposition(text: string): Sample[] {
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const match = line.startsWith('#') ? null : LINE.exec(line)
    if (!match) continue
    const labels: Record<string, string> = {}
    for (const [, name, value] of (match[2] ?? '').matchAll(LABEL)) labels[name!] = unquote(value!)
    const number = Number(match[3])
    samples.push({ name: match[1]!, labels, value: Number.isFinite(number) ? number : match[3]! })
  }
  return samples
}

const unquote = (text: string): string => text.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char))
