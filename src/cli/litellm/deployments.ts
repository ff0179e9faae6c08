/** Turns deployments of LiteLLM into manifests and models of our catalogue. */
import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { PACKAGE } from '../../config/locate.ts'
import { baseOf, readPackaged, type Section, type Upstream } from './providers.ts'

/** Names of variables that a file of ours reads, by what they are for. */
export class Variables {
  /** Variables to set before the start, with what they hold. */
  readonly toSet = new Map<string, string>()
  readonly #literals = new Map<string, string>()

  /** A reference to a variable in place of `written`, which is `os.environ/NAME` or a secret itself. `lacking`: a default. */
  reference(written: string, purpose: string, lacking = ''): string {
    const named = /^os\.environ\/([A-Za-z_]\w*)$/.exec(written)?.[1]
    const name = named ?? this.#literals.get(written) ?? this.#free(purpose)
    if (!named) this.#literals.set(written, name)
    this.toSet.set(name, named ? 'as it was for LiteLLM' : 'the text that the imported file holds')
    return `\${${name}${lacking}}`
  }

  #free(purpose: string): string {
    const name = purpose.toUpperCase().replace(/\W/g, '_')
    let free = name
    for (let next = 2; this.toSet.has(free); next++) free = `${name}_${next}`
    return free
  }
}

/** A deployment as it was understood. */
export interface Deployment {
  readonly upstream: Upstream
  readonly params: Section
  readonly info: Section
}

interface Manifest {
  readonly head: Section
  readonly models: Section[]
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value ? value : undefined)

/** The manifests and models that stand for deployments. */
export class Catalogue {
  readonly manifests = new Map<string, Manifest>()
  readonly models: Section[] = []
  readonly #ids = new Map<string, string>()
  readonly #variables: Variables

  constructor(variables: Variables) {
    this.#variables = variables
  }

  /** Adds a model that is called `id` and that this deployment alone serves. */
  async add(id: string, deployment: Deployment): Promise<void> {
    const { upstream, info } = deployment
    const { models } = this.#manifest(deployment)
    const packaged = mappingOf(upstream, text(info.base_model)?.replace(/^.*\//, ''))
    const known = packaged && (await modelOf(String(packaged.model)))
    models.push({ ...(packaged ?? unknownMapping(upstream)), model: id, id: upstream.model, ...priceOf(deployment) })
    this.models.push({ ...(known ?? unknownModel(upstream.model, info)), ...sizeOf(info), id, name: nameOf(id) })
  }

  /** The manifest of the provider, address and credential of a deployment. */
  #manifest({ upstream: { provider, manifest }, params }: Deployment): Manifest {
    const base = text(params.api_base) ?? text(params.base_url)
    const key = text(params.api_key)
    const same = JSON.stringify([provider, base, key])
    const id = this.#ids.get(same) ?? this.#freeId(provider)
    this.#ids.set(same, id)
    const found = this.manifests.get(id)
    if (found) return found
    const { models, open, discover, enabled, priced_at, base_url, auth, ...rest } = manifest
    const isOther = provider === 'openai' && base !== undefined && !base.includes('api.openai.com')
    const address = base === undefined ? { base_url } : this.#address(id, provider, base)
    const head = isOther
      ? { wires: { chat: 'openai.chat', embeddings: 'openai.embeddings' }, inline_media: true }
      : rest
    const added = {
      head: { ...head, provider: id, name: `${manifest.name}`, ...address, auth: this.#auth(id, auth as Section, key) },
      models: [],
    }
    this.manifests.set(id, added)
    return added
  }

  #address(id: string, provider: string, base: string): Section {
    const isPlain = URL.canParse(base) && !/[?#@]/.test(base)
    if (!isPlain)
      return {
        base_url: baseOf(
          provider,
          this.#variables.reference(base, `${id}_api_base`, ':-https://no-address-set.invalid'),
        ),
        allow_http: true,
      }
    return { base_url: baseOf(provider, base), ...(base.startsWith('http:') && { allow_http: true }) }
  }

  #auth(id: string, auth: Section, key: string | undefined): Section {
    if (key === undefined) {
      const name = /^\$\{(\w+)\}$/.exec(String(auth.secret ?? ''))?.[1]
      if (name) this.#variables.toSet.set(name, `the credential of ${id}`)
      return auth
    }
    const secret = this.#variables.reference(key, `${id}_api_key`)
    return auth.scheme === 'none' ? { scheme: 'bearer', secret } : { ...auth, secret }
  }

  #freeId(provider: string): string {
    let id = provider
    for (let next = 2; this.manifests.has(id); next++) id = `${provider}-${next}`
    return id
  }
}

const nameOf = (id: string): string => id.replace(/[^A-Za-z0-9._ -]/g, ' ').slice(0, 64)

function mappingOf({ manifest, model }: Upstream, base: string | undefined): Section | undefined {
  if (!Array.isArray(manifest.models)) return undefined
  const isCalled = (name: string | undefined) => (one: Section) => (one.id ?? one.model) === name
  const models = manifest.models as readonly Section[]
  return models.find(isCalled(model)) ?? models.find(isCalled(base))
}

/** Assumptions about a model that the package does not know. */
function unknownMapping({ provider, manifest }: Upstream): Section {
  const supports = ['streaming', 'tools', 'vision', 'json_output', 'structured_outputs']
  const open = manifest.open as Section | undefined
  const wires = provider === 'azure' ? { wires: { chat: 'openai.chat' } } : {}
  return open ?? { unpriced: 'allow', supports, ...wires }
}

function unknownModel(model: string, { mode }: Section): Section {
  const isEmbedding = mode === 'embedding' || (mode === undefined && /embed/.test(model))
  return {
    family: 'imported',
    input: isEmbedding ? ['text'] : ['text', 'image'],
    output: [isEmbedding ? 'embedding' : 'text'],
  }
}

function sizeOf({ max_input_tokens, max_output_tokens }: Section): Section {
  const isSize = (value: unknown) => Number.isSafeInteger(value) && Number(value) > 0
  return {
    ...(isSize(max_input_tokens) && { context_length: max_input_tokens }),
    ...(isSize(max_output_tokens) && { max_output: max_output_tokens }),
  }
}

/** `input_cost_per_token` and `output_cost_per_token` as our prices of a million tokens. */
export function priceOf({ params, info }: Deployment): Section {
  const [prompt, completion] = ['input_cost_per_token', 'output_cost_per_token'].map(key => params[key] ?? info[key])
  if (!isCost(prompt) || !isCost(completion)) return {}
  return {
    unpriced: undefined,
    pricing_tiers: undefined,
    pricing: { prompt: perMillion(prompt), completion: perMillion(completion) },
  }
}

const isCost = (value: unknown): value is number | string =>
  (typeof value === 'number' || typeof value === 'string') && value !== '' && Number(value) >= 0 && Number(value) < 100

const perMillion = (cost: number | string): string => String(Number((Number(cost) * 1e6).toFixed(9)))

async function modelOf(id: string): Promise<Section | undefined> {
  for (const file of await readdir(resolve(PACKAGE, 'config/models.d'))) {
    const { models } = (await readPackaged(`config/models.d/${file}`)) ?? {}
    const found = Array.isArray(models) && (models as readonly Section[]).find(model => model.id === id)
    if (found) {
      const { aliases, ...model } = found
      return model
    }
  }
  return undefined
}
