/**
 * Warnings about variables of credentials that are not set, since a misspelled name leaves its provider without one, and about
 * certificates that end.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { endingCertificates } from './egress.ts'
import type { ConfigFile, UnsetVariable } from './file.ts'
import { located } from './large.ts'
import type { ConfigFiles } from './load.ts'
import { PACKAGE } from './locate.ts'
import { variablesIn } from './reference.ts'
import type { ProviderFile } from './schemas/provider.ts'
import type { Path } from './source.ts'

/**
 * A line for each suspicious variable and ending certificate of what is enabled, with file, line and column. A variable of
 * the packaged manifests may be unset, unless its provider `wasLive` or the environment has a similar name that no file
 * reads. Of an address only such a name counts: its default may be meant.
 */
export async function credentialWarnings(
  { gateway, providers }: ConfigFiles,
  wasLive: (provider: string) => boolean = () => false,
): Promise<string[]> {
  const enabled = providers.filter(({ value }) => value.enabled)
  const ending = [gateway, ...enabled].flatMap(file => endingCertificates(file))
  const warnings = (await Promise.all(ending.map(located))).map(String)
  if (enabled.every(({ unset }) => unset.length === 0)) return warnings
  const packaged = await packagedVariables()
  const inManifests = providers.flatMap(({ variables: { secret, address } }) => [...secret, ...address])
  const read = new Set([...variablesIn(gateway.source.text), ...inManifests])
  const isMisspelled = ({ near }: UnsetVariable) => near !== undefined && !read.has(near)
  for (const file of enabled) {
    for (const variable of file.unset) {
      const mayLack = packaged.has(variable.name) || variable.lack === 'defaulted'
      const isLost = isWithout(file, variable) && !(mayLack && !wasLive(file.value.provider))
      if (isLost || isMisspelled(variable)) warnings.push(await warningOf(file, variable, isMisspelled(variable)))
    }
  }
  return warnings
}

/** Whether a provider has no credential because this variable has no value. */
const isWithout = ({ value }: ConfigFile<ProviderFile>, { of, path, lack }: UnsetVariable): boolean =>
  of === 'secret' && (lack !== 'defaulted' || isEmptyAt(value, path))

/** Whether the secret of a path has no text. */
const isEmptyAt = (value: unknown, path: Path): boolean =>
  path
    .reduce((inner, step) => (inner as Readonly<Record<string, unknown>>)[step], value)
    ?.toString()
    .trim() === ''

async function warningOf(
  file: ConfigFile<ProviderFile>,
  variable: UnsetVariable,
  isMisspelled: boolean,
): Promise<string> {
  const { source, value } = file
  const { name, near, of, lack, path } = variable
  const meant = isMisspelled ? `; did you mean "${near}"?` : ''
  const isLost = of === 'secret' && isEmptyAt(value, path)
  const lacks = path.length === 2 ? 'no credential' : 'one credential less'
  const lost = isLost ? `the provider "${value.provider}" has ${lacks}, because ` : ''
  const why = `${lost}the environment variable "${name}" is ${lack === 'empty' ? 'empty' : 'not set'}${meant}`
  return String(await located(source.error(why, path)))
}

let packagedNames: Promise<ReadonlySet<string>> | undefined

/** Variables that the packaged manifests read. */
function packagedVariables(): Promise<ReadonlySet<string>> {
  packagedNames ??= readPackaged()
  return packagedNames
}

async function readPackaged(): Promise<ReadonlySet<string>> {
  const folder = join(PACKAGE, 'providers.d')
  const names = new Set<string>()
  for (const name of await readdir(folder)) {
    if (!name.endsWith('.yaml')) continue
    for (const variable of variablesIn(await readFile(join(folder, name), 'utf8'))) names.add(variable)
  }
  return names
}
