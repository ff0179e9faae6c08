/** References such as `${exec:NAME}`: what they name is neither a variable nor a file, and a `SecretReader` reads it. */
import { type Schema, s } from '../core/schema.ts'
import { isObject, objectIn } from '../json/json.ts'
import type { Egress } from '../lib/egress.ts'
import { MASK } from '../secrets/mask.ts'
import { withContents } from './contents.ts'
import { filesOfEgress, linkEgress } from './egress.ts'
import { type Env, type References, type Resolved, resolveReferences } from './reference.ts'
import { type EgressEntry, egressEntry } from './schemas/egress.ts'
import { type SecretSettings, secretsEntry } from './schemas/secrets.ts'
import type { Path, Source } from './source.ts'
import { check } from './validate.ts'
import { expandReferences } from './yaml.ts'

/** Reads the secrets that commands and secret managers hold. */
export interface SecretReader {
  /** Takes effect for the reads that follow. `folder` is that of `gateway.yaml`, `egress` how connections leave. */
  configure(settings: SecretSettings, folder: string, egress?: Egress): void
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
  /** The text at `path` with its references; what stands beside them is `***`. */
  readonly shown: string
  readonly value: string
  readonly isUnread: boolean
  /** Why it could not be read. */
  readonly why?: string | undefined
}

const OUTSIDE = /\$\{((?:exec|vault|aws|gcp):(?!-)[^${}]*)\}/g
const SECTION = 'secrets'

/** The names of a text, each once. */
export const outsideIn = (text: string): string[] => [...new Set([...text.matchAll(OUTSIDE)].map(([, name]) => name!))]

/** A text whose references may be shown, and nothing else. */
export const shownReferences = (text: string): string =>
  text.replace(/(\$\{(?:exec|vault|aws|gcp):[^${}]*\})|\$?[^$]+/g, (part, reference?: string) =>
    reference === undefined ? part.replace(/[^\s,:]+/g, MASK) : reference,
  )

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

/** Needs of `configureReader`, which adds the files that it reads to `noted`. */
interface ReaderContext {
  readonly folder: string
  readonly env: Env
  readonly reader: SecretReader
  readonly noted: Set<string>
}

/**
 * Configures `reader` by the sections `secrets` and `egress` of a file. `secrets` may refer to variables and files, and apart
 * from the commands themselves to commands. An `egress` that refers to more is not used. Throws a ConfigError.
 */
export async function configureReader(
  { secrets, egress: written }: Readonly<Record<string, unknown>>,
  source: Source,
  context: ReaderContext,
): Promise<void> {
  const { folder, env, reader } = context
  const section = objectIn(secrets)
  const { exec, ...rest } = section
  const inner = await resolveReferences(source.text, folder, env)
  const entry = <T>(key: string, schema: Schema<T>, values: object, references: References = inner): T => {
    const { value, expanded } = expandReferences({ [key]: structuredClone(values) }, source, references)
    const hidden = expanded.map(({ path }) => path)
    const result = check(s.object({ [key]: schema }), value, hidden)
    if ('issue' in result) throw source.error(result.issue.message, result.issue.path, result.issue.at)
    return result.value[key]!
  }
  const isPlain = isObject(written) && outsideOf(written).length === 0
  const egress = isPlain ? await egressOf(entry('egress', egressEntry, written), source, context) : undefined
  reader.configure(entry(SECTION, secretsEntry, exec === undefined ? {} : { exec }), folder, egress)
  if (Object.keys(rest).length === 0) return
  const commands = await resolveOutside(outsideOf(rest).filter(isCommand), reader)
  reader.configure(entry(SECTION, secretsEntry, section, new Map([...inner, ...commands])), folder, egress)
}

const isCommand = (name: string): boolean => name.startsWith('exec:')

async function egressOf(egress: EgressEntry | undefined, source: Source, { folder, noted }: ReaderContext) {
  const file = { source, value: { egress }, digest: '', references: [] }
  return linkEgress(await withContents(file, filesOfEgress(file.value), folder, noted))
}
