/** `gatewayctl import`: makes our files from those of other gateways. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { rows } from '../admin/command.ts'
import { PACKAGE } from '../config/locate.ts'
import { readLitellm, readSection } from './import-source.ts'
import { errorCode, Failure, type Io } from './io.ts'
import { type Compared, shownStatus } from './litellm/compare.ts'
import type { Converted } from './litellm/convert.ts'
import type { Outcome } from './litellm/keys.ts'
import type { Line } from './litellm/report.ts'
import type { Open, Session } from './session.ts'

interface ImportOptions {
  readonly out: string
  readonly dryRun?: boolean
  readonly keys?: string
  readonly adminKeyEnv?: string
  readonly compare?: string
  readonly project?: string
}

interface Imported {
  readonly files: readonly string[]
  readonly written: boolean
  readonly set: readonly { readonly name: string; readonly value: string }[]
  readonly keys: readonly Line[]
  /** Keys that were made, and that were there already. */
  readonly imported?: Outcome
  /** Models of a running LiteLLM and of the running gateway. */
  readonly compared?: readonly Compared[]
}

/** Adds `import litellm`, `import portkey` and `import openrouter`. */
export function addImport(program: Command, open: Open): void {
  const group = program.command('import').description('files of other gateways')
  fileCommand(group, 'litellm', '[file]', 'a config.yaml of LiteLLM', '; may be left out with --keys')
    .option(
      '--keys <source>',
      'import keys into the running gateway too: the address of LiteLLM, or an export as JSON or CSV',
    )
    .option('--admin-key-env <name>', 'the variable that holds the admin key of LiteLLM, for an address')
    .option(
      '--compare <url>',
      'compare a running LiteLLM with the running gateway, by one small request for each model',
    )
    .option('--project <project>', 'the project that pays for --compare, where GATEWAY_API_KEY is not set', 'default')
    .action(async (source: string | undefined, options: ImportOptions, command: Command) => {
      const session = open(command)
      if (source === undefined && options.keys === undefined && options.compare === undefined)
        throw new Failure('name a file of LiteLLM, or --keys, or --compare')
      const { convert } = await import('./litellm/convert.ts')
      const { input, isWhole } = source === undefined ? {} : await readLitellm(source, session.io)
      const converted = input && (await convert(input, isWhole))
      const keys = options.keys === undefined ? undefined : await readAll(options, converted, session.io)
      await finish(converted, options, session, keys)
    })
  for (const [name, what] of [
    ['portkey', 'a config of Portkey, its JSON'],
    ['openrouter', 'a request or a preset of OpenRouter, its JSON'],
  ] as const) {
    fileCommand(group, name, '<file>', what)
      .option('--name <name>', 'the model that clients call', name)
      .action(async (source: string, options: ImportOptions & { readonly name: string }, command: Command) => {
        const session = open(command)
        if (!NAME.test(options.name)) throw new Failure('--name takes 1 to 100 letters, digits and . _ : - /')
        const input = await readSection(source, session.io)
        const converted =
          name === 'portkey'
            ? await (await import('./portkey.ts')).convertPortkey(input, options.name)
            : await (await import('./openrouter.ts')).convertOpenrouter(input, options.name)
        await finish(converted, options, session)
      })
  }
}

const NAME = /^(?!auto$)[A-Za-z0-9][\w.:/-]{0,99}$/

const fileCommand = (group: Command, name: string, argument: string, what: string, more = ''): Command =>
  group
    .command(name)
    .description(`make configuration files from ${what}, and report on each key; needs no gateway`)
    .argument(argument, `the file or its http(s) address${more}`)
    .option('--out <dir>', 'the folder of the files, which must not exist there yet', 'imported')
    .option('--dry-run', 'report only; write nothing')

/** Writes the files, imports the keys and prints the report. */
async function finish(
  converted: Converted | undefined,
  { out, dryRun, ...options }: ImportOptions,
  session: Session,
  keys?: Awaited<ReturnType<typeof readAll>>,
): Promise<void> {
  const files = converted ? await filesOf(converted) : new Map<string, string>()
  if (!dryRun) await writeFiles(resolve(session.io.cwd, out), files, keys !== undefined)
  const { importKeys } = await import('./litellm/keys.ts')
  const imported = keys && !dryRun ? await importKeys(keys.keys, session.admin) : undefined
  const compared = await comparedBy(options, session)
  const result: Imported = {
    files: [...files.keys()],
    written: !dryRun,
    set: [...(converted?.variables ?? [])].map(([name, value]) => ({ name, value })),
    keys: [...(converted?.lines ?? []), ...(keys?.lines ?? [])],
    ...(imported && { imported }),
    ...(compared && { compared }),
  }
  session.print(result, result => show(result, out))
}

/** Undefined without `--compare`. */
async function comparedBy(
  { compare: address, adminKeyEnv, project = 'default' }: Pick<ImportOptions, 'compare' | 'adminKeyEnv' | 'project'>,
  session: Session,
): Promise<Compared[] | undefined> {
  if (address === undefined) return undefined
  const { compare } = await import('./litellm/compare.ts')
  const key = adminKeyEnv === undefined ? undefined : session.io.env[adminKeyEnv]
  if (adminKeyEnv !== undefined && !key) throw new Failure(`the variable ${adminKeyEnv} is not set; it holds the key`)
  return compare(address, { key, project }, session)
}

/** Keys, and a line for each of their fields. */
async function readAll({ keys: source = '', adminKeyEnv }: ImportOptions, converted: Converted | undefined, io: Io) {
  const { readKeys } = await import('./litellm/key-source.ts')
  const { convertKeys } = await import('./litellm/keys.ts')
  const { Report } = await import('./litellm/report.ts')
  const found = await readKeys(source, adminKeyEnv, io)
  const report = new Report()
  const keys = convertKeys(found, report, converted?.virtualModels ?? [])
  return { keys, lines: report.lines(found, true) }
}

/** Texts by path below the folder. */
async function filesOf({ manifests, models, virtualModels, settings }: Converted): Promise<Map<string, string>> {
  const { parseDocument, stringify } = await import('./yaml.ts')
  const packaged = await readFile(resolve(PACKAGE, 'config/gateway.yaml'), 'utf8')
  const gateway = parseDocument(packaged.slice(packaged.indexOf('\n') + 1))
  gateway.set('catalog', { models: './models.d', providers: '../providers.d', routes: './routes.d' })
  if (settings?.end_users) gateway.set('end_users', settings.end_users)
  const { chains } = gateway.toJS() as { chains: { inference: readonly { readonly route?: object }[] } }
  const route = ['chains', 'inference', chains.inference.findIndex(filter => filter.route), 'route']
  // The catalogue of an import has no models of the package.
  for (const list of ['auto', 'auto_images', 'auto_videos']) gateway.deleteIn([...route, list])
  if (settings?.attempts !== undefined) gateway.setIn([...route, 'attempts'], settings.attempts)
  const yaml = (value: unknown) => stringify(value, { aliasDuplicateObjects: false })
  const files = new Map([
    ['config/gateway.yaml', String(gateway)],
    ['config/models.d/imported.yaml', yaml({ models })],
    ['config/routes.d/imported.yaml', yaml({ virtual_models: virtualModels })],
  ])
  for (const [id, manifest] of manifests) files.set(`providers.d/${id}.yaml`, yaml(manifest))
  return files
}

/** Writes all files, or none where one of them is there already. `again`: the same text may be there. */
async function writeFiles(folder: string, files: ReadonlyMap<string, string>, again: boolean): Promise<void> {
  if (files.size === 0) return
  for (const [path, text] of files) {
    const there = await readFile(resolve(folder, path), 'utf8').catch(thrown => errorCode(thrown) !== 'ENOENT')
    if (there !== false && !(again && there === text))
      throw new Failure(`${resolve(folder, path)} exists; nothing was written. Name another folder with --out`)
  }
  await mkdir(resolve(folder, 'providers.d'), { recursive: true })
  for (const [path, text] of files) {
    await mkdir(dirname(resolve(folder, path)), { recursive: true })
    await writeFile(resolve(folder, path), text, { flag: again ? 'w' : 'wx' })
  }
}

function show({ files, written, set, keys, imported, compared }: Imported, out: string): string {
  const parts: string[] = []
  if (keys.length > 0) parts.push(showKeys(keys))
  if (files.length > 0) parts.push(`${written ? 'written' : 'not written'} below ${out}: ${files.join(', ')}`)
  if (set.length > 0)
    parts.push(`set before the start:\n${set.map(({ name, value }) => `  ${name}: ${value}`).join('\n')}`)
  if (written && files.length > 0) parts.push(`check it: gatewayctl --config ${out}/config/gateway.yaml check`)
  if (imported) parts.push(`keys: ${imported.made} made, ${imported.found} there already`)
  if (imported?.unknown.length)
    parts.push(`keys name what is no model here, and cannot call it: ${imported.unknown.join(', ')}`)
  if (compared) parts.push(showCompared(compared))
  return `${parts.join('\n\n')}\n`
}

const showKeys = rows<Line>('key, fate, note', ({ key, fate, note }) => [key, fate, note])

const showCompared = rows<Compared>(
  'model, operation, status there, status here, model there, model here, USD there, USD here, differs',
  ({ model, operation, old, new: own, differences }) => [
    ...[model, operation, shownStatus(old.status), shownStatus(own.status), old.model, own.model, old.cost, own.cost],
    differences.join('; '),
  ],
)
