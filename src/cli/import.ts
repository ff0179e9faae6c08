/** `gatewayctl import litellm`: makes our files from those of another gateway. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { table } from '../admin/table.ts'
import { PACKAGE } from '../config/locate.ts'
import { call, parseUrl, readText } from './http.ts'
import { errorCode, Failure, type Io } from './io.ts'
import type { Converted } from './litellm/convert.ts'
import type { importKeys, Outcome } from './litellm/keys.ts'
import type { Line } from './litellm/report.ts'
import type { Section } from './litellm/sections.ts'
import type { Open, Session } from './session.ts'

interface ImportOptions {
  readonly out: string
  readonly dryRun?: boolean
  readonly keys?: string
  readonly adminKeyEnv?: string
}

interface Imported {
  readonly files: readonly string[]
  readonly written: boolean
  readonly set: readonly { readonly name: string; readonly value: string }[]
  readonly keys: readonly Line[]
  /** Keys that were made, and that were there already. */
  readonly imported?: Outcome
}

/** Adds `import litellm`. */
export function addImport(program: Command, open: Open): void {
  program
    .command('import')
    .description('files of other gateways')
    .command('litellm')
    .description('make configuration files from a config.yaml of LiteLLM, and report on each key; needs no gateway')
    .argument('[file]', 'the file or its http(s) address; may be left out with --keys')
    .option('--out <dir>', 'the folder of the files, which must not exist there yet', 'imported')
    .option('--dry-run', 'report only; write nothing')
    .option(
      '--keys <source>',
      'import keys into the running gateway too: the address of LiteLLM, or an export as JSON or CSV',
    )
    .option('--admin-key-env <name>', 'the variable that holds the admin key of LiteLLM, for an address')
    .action(async (source: string | undefined, options: ImportOptions, command: Command) => {
      const session = open(command)
      if (source === undefined && options.keys === undefined) throw new Failure('name a file of LiteLLM, or --keys')
      const { convert } = await import('./litellm/convert.ts')
      const converted = source === undefined ? undefined : await convert(await readInput(source, session.io))
      const keys = options.keys === undefined ? undefined : await readAll(options, converted, session.io)
      const folder = resolve(session.io.cwd, options.out)
      const files = converted ? await filesOf(converted) : new Map<string, string>()
      if (!options.dryRun) await writeFiles(folder, files, keys !== undefined)
      const imported = keys && !options.dryRun ? await importInto(keys.keys, session) : undefined
      const result: Imported = {
        files: [...files.keys()],
        written: !options.dryRun,
        set: [...(converted?.variables ?? [])].map(([name, value]) => ({ name, value })),
        keys: [...(converted?.lines ?? []), ...(keys?.lines ?? [])],
        ...(imported && { imported }),
      }
      session.print(result, result => show(result, options.out))
    })
}

/** Keys, and a line for each of their fields. */
async function readAll({ keys: source = '', adminKeyEnv }: ImportOptions, converted: Converted | undefined, io: Io) {
  const { readKeys } = await import('./litellm/key-source.ts')
  const { convertKeys } = await import('./litellm/keys.ts')
  const { Report } = await import('./litellm/report.ts')
  const found = await readKeys(source, adminKeyEnv, io)
  const report = new Report()
  const keys = convertKeys(found, report, converted?.virtualModels ?? [])
  return { keys, lines: report.lines({ keys: found }) }
}

async function importInto(keys: Parameters<typeof importKeys>[0], { admin }: Session): Promise<Outcome> {
  const { importKeys } = await import('./litellm/keys.ts')
  return importKeys(keys, admin)
}

async function readInput(source: string, io: Io): Promise<Section> {
  const text = /^https?:\/\//i.test(source) ? await download(source) : await readSource(resolve(io.cwd, source))
  const { parseDocument } = await import('./yaml.ts')
  const document = parseDocument(text, { merge: true })
  const [error] = document.errors
  // A message of the parser may repeat a line of the file, and with it a secret.
  if (error) {
    const at = error.linePos?.[0]
    throw new Failure(`${source}:${at?.line ?? 1}:${at?.col ?? 1}: this is not valid YAML (${error.code})`)
  }
  let value: unknown
  try {
    value = document.toJS()
  } catch {
    throw new Failure(`${source}: an alias has no anchor, or there are too many aliases`)
  }
  if (typeof value === 'object' && value !== null && 'model_list' in value) return value as Section
  throw new Failure(`${source} has no model_list; name a config.yaml of LiteLLM`)
}

async function readSource(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (thrown) {
    throw new Failure(`${path} cannot be read: ${errorCode(thrown) ?? 'unknown error'}`)
  }
}

async function download(source: string): Promise<string> {
  const url = parseUrl(source, 'https://example.com/config.yaml')
  const where = `${url.origin}${url.pathname}`
  try {
    const response = await call(url, { method: 'GET' })
    const text = await readText(response)
    if (response.statusCode === 200) return text
    throw new Failure(`${where} answered with status ${response.statusCode}; 200 is needed`)
  } catch (thrown) {
    if (thrown instanceof Failure) throw thrown
    throw new Failure(`${where} cannot be reached: ${errorCode(thrown) ?? 'the connection broke'}`)
  }
}

/** Texts by path below the folder. */
async function filesOf({ manifests, models, virtualModels }: Converted): Promise<Map<string, string>> {
  const { parseDocument, stringify } = await import('./yaml.ts')
  const packaged = await readFile(resolve(PACKAGE, 'config/gateway.yaml'), 'utf8')
  const gateway = parseDocument(packaged.slice(packaged.indexOf('\n') + 1))
  gateway.set('catalog', { models: './models.d', providers: '../providers.d', routes: './routes.d' })
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

function show({ files, written, set, keys, imported }: Imported, out: string): string {
  const parts = [
    table(
      ['key', 'fate', 'note'],
      keys.map(({ key, fate, note }) => [key, fate, note]),
    ),
  ]
  if (files.length > 0) parts.push(`${written ? 'written' : 'not written'} below ${out}: ${files.join(', ')}`)
  if (set.length > 0)
    parts.push(`set before the start:\n${set.map(({ name, value }) => `  ${name}: ${value}`).join('\n')}`)
  if (written && files.length > 0) parts.push(`check it: gatewayctl --config ${out}/config/gateway.yaml check`)
  if (imported) parts.push(`keys: ${imported.made} made, ${imported.found} there already`)
  return `${parts.join('\n\n')}\n`
}
