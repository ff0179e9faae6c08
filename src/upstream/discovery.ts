/** Reads the lists of models of providers now and then: engines of the operator's own come and go. */
import type { Catalog, FoundModel, ModelLists } from '../core/catalog.ts'
import type { Log } from '../core/ports.ts'
import type { Credential } from '../core/provider-settings.ts'
import type { Provider } from '../core/translator.ts'
import { Agents } from '../egress/agents.ts'
import { sharedLookup } from '../egress/guard.ts'
import { parseAnswer } from '../json/answer-bounds.ts'
import { isObject, listIn } from '../json/json.ts'
import { authorized } from './sign.ts'

const EVERY_MS = 30_000
const DEADLINE_MS = 2_000
const MAX_ANSWER_BYTES = 1024 * 1024
const MAX_MODELS = 500
/** Statuses after which another credential may be given the list. */
const REFUSALS = [401, 402, 403, 429]
/** Bounds of a model list: engines return some dozens of values per model. */
const LIST_BOUNDS = { values: 100_000 }
/** How often in a row a provider may fail to answer until its models are gone. */
const MAX_MISSES = 2

/** The models that providers listed when they last answered; the same list for as long as they are the same. */
export class FoundModels {
  #lists: ReadonlyMap<string, readonly FoundModel[]> = new Map()
  /** Called with all lists after every change. */
  onChange: (lists: ModelLists) => void = () => undefined

  of(baseUrl: string): readonly FoundModel[] {
    return this.#lists.get(baseUrl) ?? NONE
  }

  all(): ModelLists {
    return [...this.#lists]
  }

  /** Lists that are not named are forgotten. */
  replace(lists: ModelLists): void {
    const before = this.#lists
    this.#lists = new Map(lists.map(([baseUrl, models]) => [baseUrl, sameOr(before.get(baseUrl), models)]))
    const changed = before.size !== lists.length || lists.some(([baseUrl]) => before.get(baseUrl) !== this.of(baseUrl))
    if (changed) this.onChange(this.all())
  }
}

const NONE: readonly FoundModel[] = []

/** The list of before when it holds the same models. */
function sameOr(before: readonly FoundModel[] | undefined, now: readonly FoundModel[]): readonly FoundModel[] {
  const isSame = before?.length === now.length && before.every(({ id }, at) => id === now[at]!.id)
  return isSame ? before : now
}

/** The catalogue that is in force, where found models go, and how long one provider may take to answer. */
interface DiscoveryOptions {
  readonly catalog: () => Catalog
  readonly found: FoundModels
  /** `host:port` of the gateway itself, which is not looked up. */
  readonly own: () => string
  readonly log: Log
  readonly deadlineMs?: number
}

/** Looks up the providers of the present catalogue whose files say so. A provider that does not answer has no models. */
export class Discovery {
  readonly #options: DiscoveryOptions
  /** Lists are read twice a minute: no socket is kept. */
  readonly #agents = new Agents(MAX_ANSWER_BYTES, { lookup: sharedLookup() })
  readonly #misses = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #again = false
  #stopped = false

  constructor(options: DiscoveryOptions) {
    this.#options = options
  }

  /** Looks now, and from then on twice a minute; once more after a round that runs. Never rejects. */
  look(): Promise<void> {
    this.#again = true
    this.#round ??= this.#rounds().finally(() => {
      this.#round = undefined
    })
    return this.#round
  }

  /** Stops the timer and cancels a running discovery. */
  async close(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#agents.destroy()
    await this.#round
  }

  async #rounds(): Promise<void> {
    clearTimeout(this.#timer)
    while (this.#again && !this.#stopped) {
      this.#again = false
      await this.#lookOnce()
    }
    if (!this.#stopped) this.#timer = setTimeout(() => void this.look(), EVERY_MS).unref()
  }

  async #lookOnce(): Promise<void> {
    const { catalog, found, log } = this.#options
    const { open, providers } = catalog()
    const searched = [...providers.values()].filter(({ id }) => open?.get(id)?.searched)
    const lists = await Promise.all(
      searched.map(async (provider): Promise<ModelLists[number]> => {
        const { id, baseUrl } = provider
        const before = found.of(baseUrl)
        const models = await this.#list(provider, before)
        if (models.length > 0 && before.length === 0) log.info({ provider: id, models: models.length }, 'models found')
        return [baseUrl, models]
      }),
    )
    if (!this.#stopped) found.replace(lists.filter(([, models]) => models.length > 0))
  }

  async #list(provider: Provider, before: readonly FoundModel[]): Promise<readonly FoundModel[]> {
    const { baseUrl } = provider
    const models = this.#isOwn(baseUrl) ? NONE : await this.#ask(provider)
    const misses = models ? 0 : (this.#misses.get(baseUrl) ?? 0) + 1
    if (misses === 0) this.#misses.delete(baseUrl)
    else this.#misses.set(baseUrl, misses)
    if (!models) return misses < MAX_MISSES ? before : NONE
    const known = new Map(before.map(model => [model.id, model]))
    return models.map(model => (model.created > 0 ? model : (known.get(model.id) ?? { ...model, created: seconds() })))
  }

  /** Returns the first list that one of the credentials is given. */
  async #ask(provider: Provider): Promise<readonly FoundModel[] | undefined> {
    const { credentials } = provider
    for (const credential of credentials.length > 0 ? credentials : [undefined]) {
      const models = await this.#askWith(credential, provider)
      if (models !== 'refused') return models
    }
    return undefined
  }

  /** Undefined for an answer that is not a list of models, and for none. */
  async #askWith(
    credential: Credential | undefined,
    provider: Provider,
  ): Promise<readonly FoundModel[] | 'refused' | undefined> {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), this.#options.deadlineMs ?? DEADLINE_MS)
    try {
      const accept = ['accept', 'application/json', 'user-agent', 'model-gateway']
      const request = await authorized(provider, '/models', accept, credential)
      const { origin, pathname } = new URL(provider.baseUrl)
      const { statusCode, body } = await this.#agents.of(provider.egress).request({
        origin,
        path: pathname.replace(/\/$/, '') + request.path,
        method: 'GET',
        headers: request.headers,
        signal: abort.signal,
      })
      const text = await body.text()
      if (REFUSALS.includes(statusCode)) return 'refused'
      return statusCode === 200 ? modelsIn(parseAnswer(text, LIST_BOUNDS)) : undefined
    } catch (err) {
      this.#options.log.debug({ provider: provider.id, err }, 'model list failed')
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  /** A gateway that listens where an engine usually does would list itself, and itself in that, without end. */
  #isOwn(baseUrl: string): boolean {
    const { hostname, port } = new URL(baseUrl)
    const own = this.#options.own()
    return /^(?:127\.|localhost$|\[::1\]$)/.test(hostname) && port === own.slice(own.lastIndexOf(':') + 1)
  }
}

const seconds = (): number => Math.floor(Date.now() / 1000)

/** `{ data: [{ id, created? }] }`, each id once; undefined for what is no list. */
function modelsIn(answer: unknown): FoundModel[] | undefined {
  if (!isObject(answer) || !Array.isArray(answer.data)) return undefined
  const models = new Map<string, FoundModel>()
  for (const entry of listIn(answer.data)) {
    if (models.size === MAX_MODELS) break
    if (!isObject(entry) || typeof entry.id !== 'string' || models.has(entry.id)) continue
    const created = Number.isSafeInteger(entry.created) && Number(entry.created) > 0 ? Number(entry.created) : 0
    models.set(entry.id, { id: entry.id, created })
  }
  return [...models.values()]
}
