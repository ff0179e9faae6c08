/** Differences between the three versions of the protocol. */
import type { Exchange } from '../../core/exchange.ts'
import type { Usage } from '../../core/usage.ts'
import { excerptOf, type Json } from '../../json/json.ts'
import { weigh } from '../../json/size.ts'
import { usageOf } from '../accounting.ts'

/** Reasons of `finish` in all versions of the protocol. */
export type Reason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other'

/** How one version writes what differs between versions. */
export interface Version {
  readonly number: 2 | 3 | 4
  finish(reason: Reason, raw: string | undefined): unknown
  usage(ex: Exchange): Json
  /** The warning about an option of a call, by its name on the wire. */
  unsupported(option: string, details?: string): Json
  /** Builds the warning about an unsupported tool. The tool is returned as it was sent. */
  unsupportedTool(tool: Json): Json
  /** `data` is bare base64. */
  fileData(data: string): unknown
  /** Members that mark the result of a tool which the provider ran. */
  readonly ranByProvider: Json
}

const flat: Omit<Version, 'number'> = {
  finish: reason => reason,
  usage({ usage }) {
    const { prompt = 0, completion = 0 } = usage
    return {
      inputTokens: prompt,
      outputTokens: completion,
      totalTokens: prompt + completion,
      reasoningTokens: usage.internal_reasoning ?? 0,
      cachedInputTokens: usage.input_cache_read ?? 0,
    }
  },
  unsupported: (setting, details) => ({ type: 'unsupported-setting', setting, details }),
  unsupportedTool: ({ type, id, name, args }) => ({
    type: 'unsupported-tool',
    tool: { type, id, name, args: shortArguments(args) },
  }),
  fileData: data => data,
  ranByProvider: { providerExecuted: true },
}

/** Returns `{}` for arguments that are too long for a warning. */
const shortArguments = (args: unknown): unknown =>
  weigh(args, 1) > MAX_ARGUMENTS_CHARACTERS || JSON.stringify(args ?? {}).length > MAX_ARGUMENTS_CHARACTERS ? {} : args
const MAX_ARGUMENTS_CHARACTERS = 4096

const nested: Omit<Version, 'number'> = {
  finish: (unified, raw) => ({ unified, raw }),
  usage: ex => ({ inputTokens: inputOf(ex.usage), outputTokens: outputOf(ex.usage), raw: usageOf(ex) }),
  unsupported: (feature, details) => ({ type: 'unsupported', feature, details }),
  unsupportedTool: ({ id }) => ({ type: 'unsupported', feature: `provider-defined tool ${excerptOf(id)}` }),
  fileData: data => data,
  ranByProvider: {},
}

/** Input that was written to the cache counts as not cached. */
function inputOf(usage: Usage): Json {
  const total = usage.prompt ?? 0
  const cacheRead = usage.input_cache_read ?? 0
  const cacheWrite = (usage.input_cache_write ?? 0) + (usage.input_cache_write_1h ?? 0)
  return { total, noCache: Math.max(0, total - cacheRead), cacheRead, cacheWrite }
}

function outputOf({ completion: total = 0, internal_reasoning: reasoning = 0 }: Usage): Json {
  return { total, text: Math.max(0, total - reasoning), reasoning }
}

/** Versions by the number that clients send. */
const versions: Readonly<Record<string, Version>> = {
  2: { ...flat, number: 2 },
  3: { ...nested, number: 3 },
  4: { ...nested, number: 4, fileData: data => ({ type: 'data', data }) },
}

/** The header in which clients name their version. */
const VERSION_HEADER = 'ai-language-model-specification-version'

/** Returns the version of a path. Clients of version 2 use both `/v1/ai` and `/v2/ai`. */
export const versionOfPath = (path: string): Version => versions[/^\/v([34])\/ai\//.exec(path)?.[1] ?? '2']!

/** The first clients of version 3 name version 2 at `/v3/ai`. An unknown version is that of the path. */
export function versionOf(ex: Exchange): Version {
  const ofPath = versionOfPath(ex.endpoint.path)
  const named = ex.header(VERSION_HEADER) ?? ''
  if (named === '2' && ofPath.number === 3) return ofPath
  return Object.hasOwn(versions, named) ? versions[named]! : ofPath
}
