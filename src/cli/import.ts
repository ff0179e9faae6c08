/** `gatewayctl import litellm`: makes our files from those of another gateway. */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { table } from '../admin/table.ts'
import { PACKAGE } from '../config/locate.ts'
import { call, parseUrl, readText } from './http.ts'
import { errorCode, Failure, type Io } from './io.ts'
import type { Converted } from './litellm/convert.ts'
import type { Line } from './litellm/report.ts'
import type { Section } from './litellm/sections.ts'
import type { Open } from './session.ts'

interface ImportOptions {
  readonly out: string
  readonly dryRun?: boolean
}

interface Imported {
  readonly files: readonly string[]
  readonly written: boolean
  readonly set: readonly { readonly name: string; readonly value: string }[]
  readonly keys: readonly Line[]
}

/** Adds `import litellm`. */
export function addImport(program: Command, open: Open): void {
  program
    .command('import')
    .description('files of other gateways')
    .command('litellm')
    .description('make configuration files from a config.yaml of LiteLLM, and report on each key; needs no gateway')
    .argument('<file>', 'the file or its http(s) address')
    .option('--out <dir>', 'the folder of the files, which must not exist there yet', 'imported')
    .option('--dry-run', 'report only; write nothing')
    .action(async (source: string, { out, dryRun }: ImportOptions, command: Command) => {
      const { io, print } = open(command)
      const { convert } = await import('./litellm/convert.ts')
      const converted = await convert(await readInput(source, io))
      const folder = resolve(io.cwd, out)
      const files = await filesOf(converted)
      if (!dryRun) await writeFiles(folder, files)
      const set = [...converted.variables].map(([name, value]) => ({ name, value }))
      print({ files: [...files.keys()], written: !dryRun, set, keys: converted.lines }, result => show(result, out))
    })
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

/** Writes all files, or none where one of them is there already. */
async function writeFiles(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  for (const path of files.keys()) {
    const there = await stat(resolve(folder, path)).catch(() => undefined)
    if (there) throw new Failure(`${resolve(folder, path)} exists; nothing was written. Name another folder with --out`)
  }
  await mkdir(resolve(folder, 'providers.d'), { recursive: true })
  for (const [path, text] of files) {
    await mkdir(dirname(resolve(folder, path)), { recursive: true })
    await writeFile(resolve(folder, path), text, { flag: 'wx' })
  }
}

function show({ files, written, set, keys }: Imported, out: string): string {
  const parts = [
    table(
      ['key', 'fate', 'note'],
      keys.map(({ key, fate, note }) => [key, fate, note]),
    ),
  ]
  parts.push(`${written ? 'written' : 'not written'} below ${out}: ${files.join(', ')}`)
  if (set.length > 0)
    parts.push(`set before the start:\n${set.map(({ name, value }) => `  ${name}: ${value}`).join('\n')}`)
  if (written) parts.push(`check it: gatewayctl --config ${out}/config/gateway.yaml check`)
  return `${parts.join('\n\n')}\n`
}
