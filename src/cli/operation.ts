/** `gatewayctl status`, `reload`, `check`, `config`, `drain` and `metrics`. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Status } from '../admin/commands/status.ts'
import { locateConfig } from '../config/locate.ts'
import { adder } from './adder.ts'
import { parseExposition } from './exposition.ts'
import { CheckFailed } from './io.ts'
import type { Open, Session } from './session.ts'
import { facts } from './table.ts'

/** 93_784_000 → `1d 2h`; the two largest units. */
function span(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  const shown = first === -1 ? parts.slice(-1) : parts.slice(first, first + 2)
  return shown.map(([count, unit]) => `${count}${unit}`).join(' ')
}

const showStatus = (status: Status): string =>
  facts([
    ['state', status.ready ? 'ready' : `not ready: ${status.reason}`],
    ['version', status.version],
    ['listens on', status.listen],
    ...(status.publicUrl === undefined ? [] : [['public URL', status.publicUrl] as const]),
    ['process', `${status.pid}, up ${span(status.uptimeMs)}`],
    ...(status.workers ?? []).map(worker => ['worker', showWorker(worker)] as const),
    ['in flight', status.inFlight],
    ['database', status.database],
    ['configuration', status.configVersion],
    ['last reload', lastReload(status)],
    ['providers', `${status.providers}, ${status.liveProviders} live, ${status.failingProviders} failing`],
    ['models', status.models],
  ])

const showWorker = ({
  pid,
  ready,
  uptimeMs,
  inFlight,
  configVersion,
}: NonNullable<Status['workers']>[number]): string =>
  ready
    ? `${pid}, up ${span(uptimeMs)}, ${inFlight} in flight, configuration ${configVersion}`
    : `${pid}, not ready: starting or draining`

const lastReload = ({ lastReload: { ok, at, error, warnings = [] } }: Status): string =>
  `${ok ? 'ok' : 'failed'} at ${new Date(at).toISOString()}${error ? `: ${error}` : ''}${warnings
    .map(warning => `; warning: ${warning}`)
    .join('')}`

interface Reloaded {
  changed: boolean
  version: string
  restartNeeded: string[]
  warnings: string[]
}

const showReload = ({ changed, version, restartNeeded, warnings }: Reloaded): string =>
  [
    `${changed ? 'now running' : 'unchanged:'} version ${version}\n`,
    ...restartNeeded.map(file => `restart needed: ${file} has changed since it was loaded\n`),
    ...warnings.map(warning => `warning: ${warning}\n`),
  ].join('')

/** `check` reads files only; all others call the admin listener. */
export function addOperation(program: Command, open: Open): void {
  adder(program, '', open)('status', 'show the status of the gateway', {}, showStatus)

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
    .option('--strict', 'exit with status 1 when a variable of a credential is missing')
    .action(async (options: { readonly plugins?: boolean; readonly strict?: boolean }, command: Command) => {
      const { io, config, json, print } = open(command)
      const { path } = locateConfig(config, io.env, io.cwd)
      const { checkConfig } = await import('../app/check.ts')
      const summary = await checkConfig(resolve(io.cwd, path), options)
      print(summary, ({ version, providers, models, mappings }) => {
        const counts = `${providers} providers, ${models} models, ${mappings} offers`
        return `${path} is valid: version ${version}, ${counts}\n`
      })
      if (summary.unpriced.length > 0 && !json) {
        io.err(`warning: no price is known for ${summary.unpriced.join(', ')}\n`)
      }
      if (!json) for (const warning of summary.warnings) io.err(`warning: ${warning}\n`)
      if (options.strict && summary.warnings.length > 0) throw new CheckFailed()
    })

  add('config', 'show the configuration in force, secrets as ***', async ({ admin, print }) => {
    const { stringify } = await import('./yaml.ts')
    print(await admin.json<unknown>('GET', '/config'), config => stringify(config))
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
