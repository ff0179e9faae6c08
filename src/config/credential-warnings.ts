/** Warnings about variables of credentials that are not set: a misspelled name leaves its provider without one. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConfigFile, UnsetVariable } from './file.ts'
import { located } from './large.ts'
import type { ConfigFiles } from './load.ts'
import { PACKAGE } from './locate.ts'
import { variablesIn } from './reference.ts'
import type { ProviderFile } from './schemas/provider.ts'

/** Where manifests have credentials. */
const SECRET = ['auth', 'secret'] as const

/**
 * A line for each suspicious variable, with file, line and column. A variable of the packaged manifests may be unset,
 * unless its provider `wasLive` or the environment has a similar name that no manifest reads.
 */
export async function credentialWarnings(
  { providers }: ConfigFiles,
  wasLive: (provider: string) => boolean = () => false,
): Promise<string[]> {
  if (providers.every(({ unset }) => unset.length === 0)) return []
  const packaged = await packagedVariables()
  const read = new Set(providers.flatMap(({ variables: { secret, address } }) => [...secret, ...address]))
  const isMisspelled = ({ near }: UnsetVariable) => near !== undefined && !read.has(near)
  const warnings: string[] = []
  for (const file of providers) {
    for (const variable of file.unset) {
      const isOptional = packaged.has(variable.name) && !wasLive(file.value.provider)
      if (!isOptional || isMisspelled(variable)) warnings.push(await warningOf(file, variable, isMisspelled(variable)))
    }
  }
  return warnings
}

async function warningOf(
  { source, value }: ConfigFile<ProviderFile>,
  { name, near }: UnsetVariable,
  isMisspelled: boolean,
): Promise<string> {
  const meant = isMisspelled ? `; did you mean "${near}"?` : ''
  const lost = value.auth.secret === '' ? `the provider "${value.provider}" has no credential, because ` : ''
  const why = `${lost}the environment variable "${name}" is not set${meant}`
  return String(await located(source.error(why, SECRET)))
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
