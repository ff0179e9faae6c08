/** `gatewayctl models sync`: differences between the configuration files and a price list, and what of them is written. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { table } from '../../admin/command.ts'
import { readCatalog } from '../../app/check.ts'
import type { ConfigFiles } from '../../config/load.ts'
import { locateConfig } from '../../config/locate.ts'
import { mappingsIn } from '../../config/schemas/provider.ts'
import { readSource } from '../import-source.ts'
import { Failure, type Io } from '../io.ts'
import { type Comparison, compare, type Finding } from './compare.ts'
import { providerOf, readList } from './source.ts'
import { Manifest, modelsText, offerOf, overlayText, writable } from './write.ts'

/** Options of `models sync`. */
export interface SyncOptions {
  readonly from: string
  readonly provider?: string
  readonly plugins?: boolean
  readonly write?: boolean
}

/** The differences, and the files that were written. */
interface Synced {
  readonly source: 'models.dev' | 'litellm'
  readonly date: string
  readonly changed: readonly Finding[]
  readonly new: readonly Finding[]
  readonly retired: readonly Finding[]
  readonly yours: readonly Finding[]
  readonly unlisted: readonly string[]
  readonly skipped: readonly string[]
  readonly written: readonly string[]
}

/** Compares, and writes with `write`. Rejects with a Failure, or with a ConfigError for the configuration. */
export async function sync(
  { from, provider: wanted, plugins, write }: SyncOptions,
  { io, config }: { readonly io: Io; readonly config: string | undefined },
): Promise<Synced> {
  const date = new Date().toISOString().slice(0, 10)
  const list = readList(await readSource(from, 'https://models.dev/api.json', io), from, date)
  const { path, packaged } = locateConfig(config, io.env, io.cwd)
  const read = () => readCatalog(resolve(io.cwd, path), { plugins })
  const { files } = await read()
  const known = files.providers.map(({ value }) => value.provider)
  const only = wanted === undefined || known.includes(wanted) ? wanted : providerOf(wanted)
  if (only !== undefined && !known.includes(only)) throw new Failure(`the configuration has no provider "${wanted}"`)
  const stamp = { label: list.label, today: date }
  const own = (packaged ? [] : await ownFiles(files)).map(file => new Manifest(file, stamp))
  const manifests = new Map(own.map(manifest => [manifest.provider, manifest]))
  const chosen = {
    models: files.models,
    providers: files.providers.filter(({ value }) => !only || value.provider === only),
  }
  const found = compare(list, chosen, (provider, model) => manifests.get(provider)?.has(model) ?? false, date)
  if (write && packaged) throw new Failure('the packaged configuration cannot be changed; name yours with --config')
  const written = write ? await writeAll(found, { files, manifests, stamp, read }) : []
  const added = found.added.map(({ provider, model, id, changes }) => ({ provider, model, id, changes }))
  const retired = found.retired.map(({ provider, model, id, changes }) => ({ provider, model, id, changes }))
  const { changed, yours, unlisted, skipped } = found
  return { source: list.label, date, changed, new: added, retired, yours, unlisted, skipped, written }
}

const folderOf = ({ folder, gateway }: ConfigFiles, key: 'models' | 'providers'): string =>
  resolve(folder, gateway.value.catalog[key] ?? (key === 'models' ? './models.d' : '../providers.d'))

async function ownFiles(files: ConfigFiles) {
  const folder = folderOf(files, 'providers')
  const names = (await readdir(folder).catch(() => [])).filter(name => name.endsWith('.yaml') && !name.startsWith('.'))
  return Promise.all(
    names.map(async name => ({ path: join(folder, name), text: await readFile(join(folder, name), 'utf8') })),
  )
}

interface Target {
  readonly files: ConfigFiles
  readonly manifests: Map<string, Manifest>
  readonly stamp: { readonly label: string; readonly today: string }
  /** Throws where the files are not valid. */
  readonly read: () => Promise<unknown>
}

/** All texts are made before the first is written. The written files pass the check, or are taken back. */
async function writeAll(found: Comparison, { files, manifests, stamp, read }: Target): Promise<string[]> {
  const touched = new Set<Manifest>()
  for (const { provider, model, changes, listed } of writable(found)) {
    const path = join(folderOf(files, 'providers'), `${provider}.yaml`)
    const manifest = manifests.get(provider) ?? new Manifest({ path, text: overlayText(provider) }, stamp)
    manifests.set(provider, manifest)
    const { value } = files.providers.find(one => one.value.provider === provider)!
    const entry = mappingsIn(value).find(one => one.model === model) ?? {}
    manifest.set(model, changes, entry, listed && offerOf(listed))
    touched.add(manifest)
  }
  const texts = new Map([...touched].map(manifest => [manifest.path, manifest.text()]))
  const known = new Set(files.models.flatMap(({ value }) => value.models.map(({ id }) => id)))
  const added = new Map(
    found.added.filter(({ model }) => !known.has(model)).map(({ model, listed }) => [model, listed]),
  )
  if (added.size > 0) {
    const path = join(folderOf(files, 'models'), 'synced.yaml')
    const before = await readFile(path, 'utf8').catch(() => undefined)
    texts.set(path, modelsText(before, [...added.values()], stamp))
  }
  return replace(texts, read)
}

async function replace(texts: ReadonlyMap<string, string>, read: Target['read']): Promise<string[]> {
  const before = new Map<string, string | undefined>()
  for (const path of texts.keys()) before.set(path, await readFile(path, 'utf8').catch(() => undefined))
  const put = async (all: ReadonlyMap<string, string | undefined>) => {
    for (const [path, text] of all) {
      if (text === undefined) await rm(path, { force: true })
      else {
        await mkdir(resolve(path, '..'), { recursive: true })
        await writeFile(path, text)
      }
    }
  }
  try {
    await put(texts)
    await read()
  } catch (thrown) {
    await put(before)
    throw thrown
  }
  return [...texts.keys()].sort()
}

/** Tables of what differs. */
export function showSync(result: Synced): string {
  const parts: string[] = []
  const sections = [
    ['changed', result.changed],
    ['new', result.new],
    ['retired', result.retired],
    ['yours: differs', result.yours],
  ] as const
  const rows = sections.flatMap(([kind, findings]) =>
    findings.flatMap(({ provider, model, changes }) =>
      (changes.length > 0 ? changes : [{ field: '', from: null, to: '' }]).map(({ field, from, to }) => {
        return [kind, `${provider}/${model}`, field, from === null ? '' : String(from), String(to)]
      }),
    ),
  )
  if (rows.length > 0) parts.push(table(['what', 'offer', 'field', 'now', result.source], rows))
  const { changed, yours, retired, unlisted, skipped, written } = result
  const sum = `${changed.length} changed, ${result.new.length} new, ${retired.length} retired, ${yours.length} of yours differ`
  parts.push(`${sum}; ${unlisted.length} are not listed, ${skipped.length} cannot be added (--json names them)`)
  if (written.length > 0) parts.push(`written: ${written.join(', ')}`)
  else if (rows.length > 0) parts.push('nothing was written; --write does so')
  return `${parts.join('\n')}\n`
}
