/** Reads files of others, such as gateways. No message repeats a part of them: it may be a secret. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { download, parseUrl } from './http.ts'
import { errorCode, Failure, type Io } from './io.ts'
import { isSection, listOf, type Section, sectionOf, textOf } from './litellm/sections.ts'

/** Whether a source is an http(s) address, and no file. */
export const isAddress = (source: string) => /^https?:\/\//i.test(source)
const MAX_ALIASES_OF_FILE = 10_000
const SECTIONS = ['model_list', 'litellm_settings', 'router_settings', 'general_settings']

/** A `config.yaml` of LiteLLM, with the files that it includes; `isWhole`: all of them were read. */
export async function readLitellm(source: string, io: Io): Promise<{ input: Section; isWhole: boolean }> {
  let input = await readSection(source, io)
  const named = listOf(input.include)
  let isWhole = named.length > 0 && !isAddress(source)
  for (const name of isWhole ? named : []) {
    try {
      input = joined(input, await readSection(resolve(dirname(resolve(io.cwd, source)), textOf(name) ?? ''), io))
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown
      isWhole = false
    }
  }
  if (SECTIONS.some(name => name in input)) return { input, isWhole }
  throw new Failure(`${source} has no model_list; name a config.yaml of LiteLLM`)
}

/** Lists are joined, sections merged; what the including file says counts. */
function joined(input: Section, included: Section): Section {
  const all: Record<string, unknown> = { ...input }
  for (const [key, value] of Object.entries(included)) {
    if (Array.isArray(value) && Array.isArray(input[key])) all[key] = [...listOf(input[key]), ...value]
    else if (!(key in input)) all[key] = value
    else if (isSection(value) && isSection(input[key])) all[key] = { ...value, ...sectionOf(input[key]) }
  }
  return all
}

/** A YAML or JSON file whose content is a section. */
export async function readSection(source: string, io: Io): Promise<Section> {
  const text = await readSource(source, 'https://example.com/config.yaml', io)
  const { parseDocument } = await import('./yaml.ts')
  const document = parseDocument(text, { merge: true })
  const [error] = document.errors
  if (error) {
    const at = error.linePos?.[0]
    throw new Failure(`${source}:${at?.line ?? 1}:${at?.col ?? 1}: this is not valid YAML (${error.code})`)
  }
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES_OF_FILE })
  } catch {
    throw new Failure(`${source}: an alias has no anchor, or there are too many aliases`)
  }
  if (isSection(value)) return value
  throw new Failure(`${source} holds no settings`)
}

/** The text of a file, or of an address that is written like `example`. */
export async function readSource(source: string, example: string, io: Io): Promise<string> {
  if (isAddress(source)) return download(parseUrl(source, example))
  const path = resolve(io.cwd, source)
  try {
    return await readFile(path, 'utf8')
  } catch (thrown) {
    throw new Failure(`${path} cannot be read: ${errorCode(thrown) ?? 'unknown error'}`)
  }
}
