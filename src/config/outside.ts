/** References such as `${exec:NAME}`: what they name is neither a variable nor a file, and a `SecretReader` reads it. */
import { s } from '../core/schema.ts'
import { isObject } from '../json/json.ts'
import { type Env, type References, type Resolved, resolveReferences } from './reference.ts'
import { type SecretSettings, secretsEntry } from './schemas/secrets.ts'
import type { Path, Source } from './source.ts'
import { check } from './validate.ts'
import { expandReferences } from './yaml.ts'

/** Reads the secrets that commands and secret managers hold. */
export interface SecretReader {
  /** Takes effect for the reads that follow. `folder` is that of `gateway.yaml`. */
  configure(settings: SecretSettings, folder: string): void
  /**
   * Forgets what was read. With the names of references that a provider has refused, forgets those alone, each at most once a
   * minute; returns whether there is one.
   */
  renew(refused?: readonly string[]): boolean
  /** `name` is the text between the braces, such as `exec:TOKEN`. Never rejects. */
  read(name: string): Promise<Resolved>
}

/** A value that such a reference has in a file. */
export interface OutsideValue {
  /** The text between the braces. */
  readonly name: string
  readonly path: Path
  readonly value: string
  readonly isUnread: boolean
}

const OUTSIDE = /\$\{((?:exec|vault|aws|gcp):(?!-)[^${}]*)\}/g
const SECTION = 'secrets'

/** The names of a text, each once. */
export const outsideIn = (text: string): string[] => [...new Set([...text.matchAll(OUTSIDE)].map(([, name]) => name!))]

/** The names in the values of a file; comments do not count. */
export function outsideOf(value: unknown): string[] {
  const texts: string[] = []
  const left = [value]
  while (left.length > 0) {
    const one = left.pop()
    if (typeof one === 'string') texts.push(one)
    else if (typeof one === 'object' && one !== null) for (const inner of Object.values(one)) left.push(inner)
  }
  return outsideIn(texts.join('\n'))
}

/** Reads the secrets of these names at the same time. */
export async function resolveOutside(
  names: readonly string[],
  reader: SecretReader | undefined,
): Promise<[string, Resolved][]> {
  const absent: Resolved = { issue: () => 'this command reads no secrets of commands and managers', unset: false }
  return Promise.all(names.map(async name => [name, (await reader?.read(name)) ?? absent] as [string, Resolved]))
}

/**
 * Configures `reader` by the section `secrets`, as it stands in a file. The section may refer to variables and files, and
 * apart from the commands themselves to commands. Throws a ConfigError.
 */
export async function configureReader(
  section: unknown,
  source: Source,
  { folder, env, reader }: { readonly folder: string; readonly env: Env; readonly reader: SecretReader },
): Promise<void> {
  const { exec, ...rest } = isObject(section) ? section : {}
  const within = async (values: object, names: readonly string[]): Promise<SecretSettings> => {
    const inner = await resolveReferences(source.text, folder, env)
    const references: References = new Map([...inner, ...(await resolveOutside(names, reader))])
    const { value, expanded } = expandReferences({ [SECTION]: structuredClone(values) }, source, references)
    const hidden = expanded.map(({ path }) => path)
    const result = check(s.object({ [SECTION]: secretsEntry }), value, hidden)
    if ('issue' in result) throw source.error(result.issue.message, result.issue.path, result.issue.at)
    return result.value[SECTION]!
  }
  reader.configure(await within(exec === undefined ? {} : { exec }, []), folder)
  const commands = outsideOf(rest).filter(name => name.startsWith('exec:'))
  if (Object.keys(rest).length > 0) reader.configure(await within({ exec, ...rest }, commands), folder)
}
