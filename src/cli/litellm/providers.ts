/** Finds the packaged manifests, by the prefixes that LiteLLM writes before the names of models. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { PACKAGE } from '../../config/locate.ts'
import { parseDocument } from '../yaml.ts'
import { type Section, textOf } from './sections.ts'

/** Packaged providers by the names that LiteLLM has for them before models and in its file of prices. */
export const RENAMED: Readonly<Record<string, string>> = {
  'text-completion-openai': 'openai',
  azure_ai: 'azure',
  bedrock: 'aws-bedrock',
  bedrock_converse: 'aws-bedrock',
  gemini: 'google-ai-studio',
  cohere_chat: 'cohere',
  together_ai: 'together',
  fireworks_ai: 'fireworks',
  nvidia_nim: 'nvidia',
  dashscope: 'alibaba',
  jina_ai: 'jina',
  codestral: 'mistral',
}

/** Packaged providers by prefix, where the names differ. */
const PROVIDERS: Readonly<Record<string, string>> = {
  ...RENAMED,
  text_completion_openai: 'openai',
  azure_text: 'azure',
  vertex_ai: 'google-vertex',
  vertex_ai_beta: 'google-vertex',
  ollama_chat: 'ollama',
  hosted_vllm: 'vllm',
  lm_studio: 'lmstudio',
  'text-completion-codestral': 'mistral',
}

/** Further services with the API of OpenAI, from `get_llm_provider_logic.py` and `openai_like/providers.json` of LiteLLM. */
const SERVICES: Readonly<Record<string, readonly [base: string, variable: string]>> = {
  ai21: ['https://api.ai21.com/studio/v1', 'AI21_API_KEY'],
  ai21_chat: ['https://api.ai21.com/studio/v1', 'AI21_API_KEY'],
  aiml: ['https://api.aimlapi.com/v1', 'AIML_API_KEY'],
  amazon_nova: ['https://api.nova.amazon.com/v1', 'AMAZON_NOVA_API_KEY'],
  chutes: ['https://llm.chutes.ai/v1', 'CHUTES_API_KEY'],
  cloudflare: [
    `https://api.cloudflare.com/client/v4/accounts/\${CLOUDFLARE_ACCOUNT_ID:-no-account-set}/ai/v1`,
    'CLOUDFLARE_API_KEY',
  ],
  cometapi: ['https://api.cometapi.com/v1', 'COMETAPI_KEY'],
  compactifai: ['https://api.compactif.ai/v1', 'COMPACTIFAI_API_KEY'],
  databricks: [`\${DATABRICKS_API_BASE:-https://no-address-set.invalid}`, 'DATABRICKS_API_KEY'],
  featherless_ai: ['https://api.featherless.ai/v1', 'FEATHERLESS_AI_API_KEY'],
  friendliai: ['https://api.friendli.ai/serverless/v1', 'FRIENDLI_TOKEN'],
  github: ['https://models.inference.ai.azure.com', 'GITHUB_API_KEY'],
  galadriel: ['https://api.galadriel.com/v1', 'GALADRIEL_API_KEY'],
  gmi: ['https://api.gmi-serving.com/v1', 'GMI_API_KEY'],
  gradient_ai: ['https://inference.do-ai.run/v1', 'GRADIENT_AI_API_KEY'],
  heroku: ['https://us.inference.heroku.com/v1', 'HEROKU_API_KEY'],
  hyperbolic: ['https://api.hyperbolic.xyz/v1', 'HYPERBOLIC_API_KEY'],
  inception: ['https://api.inceptionlabs.ai/v1', 'INCEPTION_API_KEY'],
  lambda_ai: ['https://api.lambda.ai/v1', 'LAMBDA_API_KEY'],
  litellm_proxy: [`\${LITELLM_PROXY_API_BASE:-https://no-address-set.invalid}`, 'LITELLM_PROXY_API_KEY'],
  llamafile: ['http://127.0.0.1:8080/v1', ''],
  meta_llama: ['https://api.llama.com/compat/v1', 'LLAMA_API_KEY'],
  morph: ['https://api.morphllm.com/v1', 'MORPH_API_KEY'],
  'nano-gpt': ['https://nano-gpt.com/api/v1', 'NANOGPT_API_KEY'],
  nscale: ['https://inference.api.nscale.com/v1', 'NSCALE_API_KEY'],
  ovhcloud: ['https://oai.endpoints.kepler.ai.cloud.ovh.net/v1', 'OVHCLOUD_API_KEY'],
  poe: ['https://api.poe.com/v1', 'POE_API_KEY'],
  publicai: ['https://api.publicai.co/v1', 'PUBLICAI_API_KEY'],
  recraft: ['https://external.api.recraft.ai/v1', 'RECRAFT_API_KEY'],
  sambanova: ['https://api.sambanova.ai/v1', 'SAMBANOVA_API_KEY'],
  sarvam: ['https://api.sarvam.ai/v1', 'SARVAM_API_KEY'],
  scaleway: ['https://api.scaleway.ai/v1', 'SCW_SECRET_KEY'],
  synthetic: ['https://api.synthetic.new/openai/v1', 'SYNTHETIC_API_KEY'],
  v0: ['https://api.v0.dev/v1', 'V0_API_KEY'],
  vercel_ai_gateway: ['https://ai-gateway.vercel.sh/v1', 'VERCEL_AI_GATEWAY_API_KEY'],
  veniceai: ['https://api.venice.ai/api/v1', 'VENICE_AI_API_KEY'],
  volcengine: ['https://ark.cn-beijing.volces.com/api/v3', 'VOLCENGINE_API_KEY'],
  wandb: ['https://api.inference.wandb.ai/v1', 'WANDB_API_KEY'],
}

/** Wires of a service that speaks the API of OpenAI. */
export const OPENAI_WIRES: Readonly<Record<string, string>> = {
  chat: 'openai.chat',
  embeddings: 'openai.embeddings',
  images: 'openai.images',
  image_edits: 'openai.image-edits',
  moderations: 'openai.moderations',
  speech: 'openai.speech',
  transcriptions: 'openai.transcriptions',
  translations: 'openai.translations',
  realtime: 'openai.realtime',
  rerank: 'jina.rerank',
  videos: 'openai.videos',
}

/** Infixes of `bedrock/converse/…` and the like, which choose a way to call or a region. */
const INFIX =
  /^(?:(?:converse|invoke|converse_like|responses|chat|o_series|gpt5_series|[a-z]{2}(?:-gov)?-[a-z]+-\d|(?:llama|nova|deepseek_r1|openai|qwen\w*)(?=\/arn:))\/)+/
/** Things of Bedrock that are no models, models of Vertex AI with methods of their own, and services with other APIs. */
const UNSERVED =
  /^(?:bedrock\/(?:agent|agentcore|flow|async_invoke)\/|vertex_ai\/(?:mistral|codestral|jamba|openai\/\d)|(?:watsonx|watsonx_text|sagemaker|sagemaker_chat|replicate|predibase|petals|nlp_cloud|aleph_alpha|oci|triton|gigachat|github_copilot|auto_router)\/)/
/** Publishers whose models Vertex AI serves by the API of OpenAI. */
const PUBLISHERS = /^(?:deepseek-ai|meta|minimaxai|moonshotai|openai|qwen|zai-org)\//

/** Providers of models that are written without one; without any, OpenAI. */
const BARE: readonly (readonly [RegExp, string])[] = [
  [/^claude/, 'anthropic'],
  [/^(?:gemini-|imagen|veo-|multimodalembedding|text-multilingual-|text-embedding-0)/, 'vertex_ai'],
  [/^(?:command-|c4ai-|embed-)/, 'cohere'],
  [/^(?:[a-z-]{2,6}\.)?(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen|stability)\.[a-z]/, 'bedrock'],
]

/** Ends that the base addresses of our manifests have, and those of LiteLLM lack. */
const ENDS: Readonly<Record<string, string>> = {
  anthropic: '/v1',
  'azure-anthropic': '/anthropic/v1',
  ollama: '/v1',
  huggingface: '/v1',
  azure: '/openai/v1',
  cohere: '/v2',
}

/** Models that think: OpenAI and Azure take requests of the Responses API for them, and no `max_tokens` in others. */
export const THINKS = /^(?:o\d|gpt-[5-9])/

/** Names of models that Fireworks AI has below an account of its own: without a path, and not those of audio. */
const FIREWORKS_NAME = /^(?!whisper)[^/#*]+$/

/** A manifest, and the model as its provider names it. */
export interface Upstream {
  readonly provider: string
  readonly model: string
  readonly manifest: Section
  /** The model, where `model` is a profile of it. */
  readonly base?: string
  /** No manifest is packaged: it is taken to speak the API of OpenAI. */
  readonly isAssumed?: boolean
}

/** The manifest that serves `params.model`, such as `groq/llama-3.1-8b-instant`; undefined when there is none. */
export async function upstreamOf(params: Section, mode: unknown): Promise<Upstream | undefined> {
  const name = String(params.model)
  const slash = name.startsWith('os.environ/') ? -1 : name.indexOf('/')
  const start = slash < 0 ? '' : name.slice(0, slash)
  const base = textOf(params.api_base) ?? textOf(params.base_url)
  const bare = BARE.find(([look, provider]) => look.test(name) && (!base || provider === 'anthropic'))?.[1] ?? 'openai'
  const custom = textOf(params.custom_llm_provider)
  const prefix = custom ?? (slash < 0 ? bare : start)
  const rest = start === prefix ? name.slice(slash + 1) : name
  const plain = /^(?:bedrock|azure|openai|vertex)/.test(prefix) ? rest.replace(INFIX, '') || rest : rest
  const kind = plain.endsWith('-fast') ? 'routers' : 'models'
  const long = prefix === 'fireworks_ai' ? plain.replace(FIREWORKS_NAME, `accounts/fireworks/${kind}/$&`) : plain
  const model = prefix === 'huggingface' && !base ? plain.replace(/^([\w-]+)\/([^/]+\/[^/]+)$/, '$2:$1') : long
  if (!model || UNSERVED.test(`${prefix}/${model}`)) return undefined
  const provider = packagedOf(prefix, model, mode)
  const file = provider === 'vertex-openapi' ? 'google-vertex' : provider
  const packaged = /^[a-z0-9-]+$/.test(file) ? await readPackaged(`providers.d/${file}.yaml`) : undefined
  const manifest =
    packaged && file !== provider
      ? { ...packaged, wires: { chat: 'openai.chat' }, models: [], base_url: `${packaged.base_url}/endpoints/openapi` }
      : packaged
  const profile = prefix === 'bedrock' ? textOf(params.model_id) : undefined
  if (!manifest) return serviceOf(prefix, model, base)
  return { provider, model: profile ?? model, manifest, ...(profile !== undefined && { base: model }) }
}

function packagedOf(prefix: string, model: string, mode: unknown): string {
  const own = PROVIDERS[prefix] ?? prefix
  if (own === 'google-vertex' && model.startsWith('claude')) return 'vertex-anthropic'
  if (own === 'google-vertex' && PUBLISHERS.test(model)) return 'vertex-openapi'
  if (prefix === 'azure_ai' && model.startsWith('claude')) return 'azure-anthropic'
  if (own === 'aws-bedrock' && (mode === 'rerank' || /rerank/.test(model))) return 'aws-bedrock-rerank'
  return own
}

/** A packaged manifest without what others say; only the wires of an API where `api_base` is not that of OpenAI. */
export function headOf({ provider, model, manifest }: Upstream, params: Section): Section {
  const { models, open, discover, enabled, priced_at, base_url, auth, organizations, ...rest } = manifest
  const base = textOf(params.api_base) ?? textOf(params.base_url)
  const isOther = provider === 'openai' && base !== undefined && !base.includes('api.openai.com')
  const renamed = THINKS.test(model) && { quirks: { rename: { max_tokens: 'max_completion_tokens' } } }
  return isOther ? { wires: OPENAI_WIRES, inline_media: true, ...renamed } : rest
}

/** A service without a packaged manifest that is taken to speak the API of OpenAI. */
function serviceOf(prefix: string, model: string, base: string | undefined): Upstream | undefined {
  const known = Object.hasOwn(SERVICES, prefix) ? SERVICES[prefix] : undefined
  if (!known && base === undefined) return undefined
  const provider =
    prefix
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '') || 'service'
  const auth = known?.[1] ? { scheme: 'bearer', secret: `\${${known[1]}}` } : { scheme: 'none' }
  const name = prefix.replace(/[^ -~]/g, ' ')
  const manifest = { provider, name, base_url: known?.[0], auth, wires: OPENAI_WIRES, inline_media: true }
  return { provider, model, manifest, isAssumed: true }
}

/** An address without slashes at its end. */
export function withoutSlashes(base: string): string {
  let end = base.length
  while (base[end - 1] === '/') end--
  return base.slice(0, end)
}

/** Whether an address is that of one model at Azure, which takes bearer tokens. */
export const isServerless = (base: string): boolean => /\.(?:models|inference)\.ai\.azure\.com(?:\/|$)/.test(base)

/** `api_base` as `base_url`. */
export function baseOf(provider: string, base: string): string {
  const trimmed = withoutSlashes(base)
    .replace(/\/(?:chat\/completions|embeddings|rerank|responses|messages)$/, '')
    .replace(/\/ai\/run$/, '/ai/v1')
    .replace(/\/inference:complete$/, '/v1')
  const end = ENDS[provider] ?? ''
  if (isServerless(base)) return `${trimmed.replace(/\/v1$/, '')}/v1`
  if (provider === 'azure') return trimmed.replace(/\/(?:openai|models)(?:\/.*)?$/, '') + end
  if (provider === 'azure-anthropic') return trimmed.replace(/\/(?:anthropic|models)(?:\/.*)?$/, '') + end
  if (provider === 'cohere') return trimmed.replace(/\/v\d(?:\/\w+)?$/, '') + end
  if (provider === 'ollama') return trimmed.replace(/\/api(?:\/\w+)?$/, '') + (/\/v\d$/.test(trimmed) ? '' : end)
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
