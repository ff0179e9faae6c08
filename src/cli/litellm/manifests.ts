/** The manifests and models that stand for deployments. */
import { addressOf, authOf } from './cloud.ts'
import { type Deployment, mappingOf, modelOf, packagedModel } from './models.ts'
import { SAMPLED, settingsOf } from './params.ts'
import { headOf } from './providers.ts'
import { isSection, type Section } from './sections.ts'
import type { Variables } from './variables.ts'

/** Parameters that say where a request is sent, and how. Deployments that share them share a manifest. */
const OF_MANIFEST =
  /^(?:api_|base_url|organization|azure_|aws_|vertex_|extra_|headers$|default_headers|additional_drop|timeout|stream_timeout)/

interface Manifest {
  readonly head: Section
  readonly models: Section[]
  open?: Section
}

/** Manifests by id, and models by id. */
export class Catalogue {
  readonly manifests = new Map<string, Manifest>()
  readonly #models = new Map<string, Section>()
  readonly #ids = new Map<string, string[]>()
  readonly #variables: Variables
  readonly #names: ReadonlySet<string>
  /** Beginnings of names, which no manifest for any name has as its id. */
  readonly #starts: ReadonlySet<string>

  /** `names`: those that clients call, which no target may be taken for. */
  constructor(variables: Variables, names: ReadonlySet<string>) {
    this.#variables = variables
    this.#names = names
    this.#starts = new Set([...names].filter(name => !name.includes('*')).map(name => name.split('/', 1)[0]!))
  }

  get models(): readonly Section[] {
    return [...this.#models.values()]
  }

  /** Adds an offer of the model `name`, and resolves with `<provider>/<name>`. */
  async add(name: string, deployment: Deployment, hidden: boolean): Promise<string> {
    const [id, { models }] = this.#manifest(
      deployment,
      (one, manifest) => !this.#names.has(`${one}/${name}`) && !manifest?.models.some(({ model }) => model === name),
    )
    models.push({ ...mappingOf(deployment), id: this.#idOf(deployment.upstream.model), model: name })
    if (!this.#models.has(name)) this.#addModel(name, await modelOf(deployment), hidden)
    return `${id}/${name}`
  }

  #idOf(model: string): string {
    if (!model.startsWith('os.environ/')) return model
    const id = this.#variables.reference(model, 'model', ':-not-set')
    this.#variables.toSet.set(/\w+/.exec(id)![0], 'the model as its provider names it, without openai/')
    return id
  }

  /** Lets a manifest serve any name, and the packaged models at their prices. Resolves with `<provider>/<pattern>`. */
  async addOpen(deployment: Deployment): Promise<string> {
    const { upstream } = deployment
    const [id, manifest] = this.#manifest(deployment, one => !this.#starts.has(one))
    if (!manifest.open) {
      const plain = mappingOf({
        ...deployment,
        upstream: { ...upstream, model: 'any', manifest: { ...upstream.manifest, models: [] } },
      })
      const { id: _id, supports, ...open } = plain
      manifest.open = isSection(upstream.manifest.open) ? upstream.manifest.open : open
      const packaged = Array.isArray(upstream.manifest.models) ? (upstream.manifest.models as readonly Section[]) : []
      for (const mapping of packaged) await this.#addPackaged(id, manifest, mapping)
    }
    return `${id}/${upstream.model}`
  }

  async #addPackaged(id: string, { models }: Manifest, mapping: Section): Promise<void> {
    const model = String(mapping.model)
    const name = this.#names.has(model) ? `${id}:${model}` : model
    const known = await packagedModel(model)
    if (!known || models.some(one => one.model === name)) return
    const { deactivated_at, ...offer } = mapping
    models.push({ ...offer, id: mapping.id ?? model, model: name })
    if (!this.#models.has(name)) this.#addModel(name, known, true)
  }

  #addModel(id: string, model: Section, hidden: boolean): void {
    this.#models.set(id, { ...model, id, name: id.slice(0, 64), ...(hidden && { hidden }) })
  }

  /** The manifest of the provider, address and credential of a deployment; one that `fits`. */
  #manifest(deployment: Deployment, fits: (id: string, manifest?: Manifest) => boolean): [string, Manifest] {
    const { upstream, params } = deployment
    const { provider } = upstream
    const own = Object.entries(params).filter(([key]) => OF_MANIFEST.test(key) || SAMPLED.includes(key))
    const same = JSON.stringify([headOf(upstream, params), own.sort()])
    const ids = this.#ids.get(same) ?? []
    this.#ids.set(same, ids)
    const known = ids.find(one => fits(one, this.manifests.get(one)))
    if (known !== undefined) return [known, this.manifests.get(known)!]
    let id = provider
    for (let next = 2; this.manifests.has(id) || !fits(id); next++) id = `${provider}-${next}`
    ids.push(id)
    const added = { head: this.#head(id, deployment), models: [] }
    this.manifests.set(id, added)
    return [id, added]
  }

  #head(id: string, { upstream, params, at }: Deployment): Section {
    const { provider, manifest } = upstream
    this.#variables.place = at
    const head = headOf(upstream, params)
    const place = { id, provider, params, manifest, variables: this.#variables }
    const address = { ...addressOf(place), auth: authOf(place) }
    const settings = settingsOf(params, head, id, this.#variables)
    return { ...head, provider: id, name: String(manifest.name), ...address, ...settings, organizations: 'all' }
  }
}

/** Manifests and models as their files have them. */
export function contentsOf({ manifests, models }: Catalogue) {
  const files = [...manifests].map(([id, { head, models, open }]): [string, Section] => [
    id,
    { ...head, models, ...(open && { open }) },
  ])
  return { manifests: new Map(files), models }
}
