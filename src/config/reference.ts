/** `${NAME}`, `${NAME:-default}` and `${file:path}` in values: environment variables and secret files. */
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { didYouMean } from '../lib/nearest.ts'

/** Environment variables. */
export type Env = Readonly<Record<string, string | undefined>>
/** Value of a reference, or why it has none. `unset` marks an unset variable, `isUnread` a value that stands for another, `why` it does. */
export type Resolved =
  | { readonly value: string; readonly isDefault?: boolean; readonly isUnread?: boolean; readonly why?: string }
  | { readonly issue: () => string; readonly unset: boolean }
/** References by the text between the braces. */
export type References = ReadonlyMap<string, Resolved>

const REFERENCE = /\$\{([^${}]*)(\}?)/g
/** A name, and a default for an unset or empty variable. */
const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s
const MAX_FILE_BYTES = 64 * 1024

/** Resolves all references of a text before it is parsed, so that parsing is synchronous. */
export async function resolveReferences(text: string, folder: string, env: Env): Promise<References> {
  const found = new Map<string, Resolved>()
  for (const [, name = ''] of text.matchAll(REFERENCE)) {
    if (found.has(name)) continue
    const file = fileOf(name, folder)
    if (file !== undefined) found.set(name, await fromFile(file))
    else {
      const [, variable, fallback] = VARIABLE.exec(name) ?? []
      if (variable !== undefined) found.set(name, fromEnv(variable, fallback, env))
    }
  }
  return found
}

/** Files referenced by a text, as absolute paths. */
export const referencedFiles = (references: References, folder: string): string[] =>
  [...references.keys()].map(name => fileOf(name, folder)).filter(file => file !== undefined)

/** `text` with every reference replaced; calls `issue` for the first that cannot be resolved. */
export function expand(text: string, references: References, issue: (why: string, unset: boolean) => string): string {
  return text.replace(REFERENCE, (written, name: string, end: string) => {
    const found = end ? references.get(name) : undefined
    if (!found) return issue(`expected "\${NAME}" or "\${file:path}", got "${written}"`, false)
    return 'value' in found ? found.value : issue(found.issue(), found.unset)
  })
}

/** The references with the variables of these names unresolved. */
export const unresolved = (references: References, names: ReadonlySet<string>): References =>
  new Map(
    [...references].map(([name, found]) => {
      const variable = VARIABLE.exec(name)?.[1]
      return [name, variable !== undefined && names.has(variable) ? { value: `\${${name}}` } : found]
    }),
  )

/** Whether any reference of a text has its value from the environment or a file, and not from its default. */
export const isReferred = (text: string, references: References): boolean =>
  [...text.matchAll(REFERENCE)].some(([, name = '']) => {
    const found = references.get(name)
    return found !== undefined && 'value' in found && !found.isDefault
  })

/** Whether any reference of a text was not read. */
export const hasUnread = (text: string, references: References): boolean =>
  [...text.matchAll(REFERENCE)].some(([, name = '']) => {
    const found = references.get(name)
    return found !== undefined && 'value' in found && found.isUnread === true
  })

/** Names of the environment variables in a text. */
export const variablesIn = (text: string): string[] =>
  [...text.matchAll(REFERENCE)].flatMap(([, name = '']) => VARIABLE.exec(name)?.[1] ?? [])

/** Why a variable has no value. `defaulted` ones use the default that the reference gives. */
export type Lack = 'unset' | 'empty' | 'defaulted'

/** Returns the `names` of variables without a value, each with the reason. */
export function lacking(references: References, names: readonly string[]): ReadonlyMap<string, Lack> {
  const found = new Map<string, Lack>()
  for (const [text, resolved] of references) {
    const name = VARIABLE.exec(text)?.[1]
    if (name === undefined || !names.includes(name)) continue
    const lack = lackOf(resolved)
    if (lack) found.set(name, lack)
  }
  return found
}

function lackOf(resolved: Resolved): Lack | undefined {
  if ('issue' in resolved) return resolved.unset ? 'unset' : undefined
  if (resolved.isDefault) return 'defaulted'
  return resolved.value.trim() === '' ? 'empty' : undefined
}

const fileOf = (name: string, folder: string): string | undefined =>
  name.startsWith('file:') && name.length > 5 ? resolve(folder, name.slice(5).trim()) : undefined

function fromEnv(name: string, fallback: string | undefined, env: Env): Resolved {
  const set = Object.hasOwn(env, name) ? env[name] : undefined
  const value = fallback === undefined ? set : set || fallback
  if (value !== undefined) return { value, isDefault: fallback !== undefined && !set }
  const issue = () => `the environment variable "${name}" is not set${didYouMean(name, Object.keys(env))}`
  return { issue, unset: true }
}

async function fromFile(path: string): Promise<Resolved> {
  const issue = (why: string): Resolved => ({
    issue: () => `the file "${path}" cannot be read: ${why}`,
    unset: false,
  })
  try {
    const facts = await stat(path)
    if (!facts.isFile()) return issue('it is not a file')
    if (facts.size > MAX_FILE_BYTES) return issue(`it is larger than ${MAX_FILE_BYTES} bytes`)
    return { value: (await readFile(path, 'utf8')).replace(/\r?\n$/, '') }
  } catch (thrown) {
    return issue(systemErrorText(thrown))
  }
}

/** Why a file could not be read, in words. */
export function systemErrorText(thrown: unknown): string {
  const { code, message } = thrown as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'no such file or folder'
  return code === 'EACCES' ? 'permission denied' : (code ?? message)
}
