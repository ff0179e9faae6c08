/** Reads the packaged manifests, by the prefixes that LiteLLM writes before the names of models. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { PACKAGE } from '../../config/locate.ts'
import { parseDocument } from '../yaml.ts'

/** A section of a YAML file. */
export type Section = Readonly<Record<string, unknown>>

/** Packaged providers by prefix, where the names differ. */
const PROVIDERS: Readonly<Record<string, string>> = {
  text_completion_openai: 'openai',
  azure_ai: 'azure',
  bedrock: 'aws-bedrock',
  vertex_ai: 'google-vertex',
  gemini: 'google-ai-studio',
  ollama_chat: 'ollama',
  hosted_vllm: 'vllm',
  lm_studio: 'lmstudio',
  cohere_chat: 'cohere',
  together_ai: 'together',
  fireworks_ai: 'fireworks',
  nvidia_nim: 'nvidia',
  dashscope: 'alibaba',
  volcengine: 'bytedance',
  jina_ai: 'jina',
}
/** Infixes of `bedrock/converse/…` and the like, which choose a way to call that we do not need. */
const INFIX = /^(?:converse|invoke|converse_like|responses)\//

/** Ends that the base addresses of our manifests have, and those of LiteLLM lack. */
const ENDS: Readonly<Record<string, string>> = { anthropic: '/v1', ollama: '/v1', azure: '/openai/v1', cohere: '/v2' }

/** A packaged manifest, and the model as its provider names it. */
export interface Upstream {
  readonly provider: string
  readonly model: string
  readonly manifest: Section
}

/** The manifest that serves `name`, such as `groq/llama-3.1-8b-instant`; undefined when there is none. */
export async function upstreamOf(name: string, custom: string | undefined): Promise<Upstream | undefined> {
  const slash = name.indexOf('/')
  const bare = /^claude/.test(name) ? 'anthropic' : 'openai'
  const prefix = custom ?? (slash < 0 ? bare : name.slice(0, slash))
  const rest = slash >= 0 && name.slice(0, slash) === prefix ? name.slice(slash + 1) : name
  const model = rest.replace(INFIX, '')
  const own = PROVIDERS[prefix] ?? prefix
  const provider = own === 'google-vertex' && model.startsWith('claude') ? 'vertex-anthropic' : own
  if (!/^[a-z0-9-]+$/.test(provider) || !model) return undefined
  const manifest = await readPackaged(`providers.d/${provider}.yaml`)
  return manifest && { provider, model, manifest }
}

/** `api_base` as `base_url`. */
export function baseOf(provider: string, base: string): string {
  const trimmed = base.endsWith('/') ? base.slice(0, -1) : base
  const end = ENDS[provider] ?? ''
  return /\/v\d\w*$/.test(trimmed) ? trimmed : trimmed + end
}

const read = new Map<string, Promise<Section | undefined>>()

/** A YAML file of the package; undefined where there is none. */
export function readPackaged(path: string): Promise<Section | undefined> {
  const found = read.get(path) ?? parse(path)
  read.set(path, found)
  return found
}

async function parse(path: string): Promise<Section | undefined> {
  let text: string
  try {
    text = await readFile(resolve(PACKAGE, path), 'utf8')
  } catch {
    return undefined
  }
  return parseDocument(text, { merge: true }).toJS() as Section
}
