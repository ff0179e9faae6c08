/** Writes differences into the operator's own files; comments and the order of entries stay. */
import type { Document } from 'yaml'
import { Failure } from '../io.ts'
import { parseDocument, stringify } from '../yaml.ts'
import type { Comparison, Difference, Finding } from './compare.ts'
import type { Listed } from './source.ts'

/** A file of the operator, by its path. */
export interface OwnFile {
  readonly path: string
  readonly text: string
}

interface Stamp {
  readonly label: string
  readonly today: string
}

type Entry = Readonly<Record<string, unknown>>

const ABOVE = /^above (\d+): (.+)$/

/** Own manifests by provider: entries are found, set and added by model. */
export class Manifest {
  readonly path: string
  readonly #document: Document
  readonly #stamp: Stamp

  /** Throws a Failure for what is not YAML. */
  constructor({ path, text }: OwnFile, stamp: Stamp) {
    this.path = path
    this.#document = parseDocument(text)
    this.#stamp = stamp
    if (this.#document.errors.length > 0) throw new Failure(`${path} is not valid YAML; nothing was written`)
  }

  get provider(): string {
    return String(this.#document.get('provider'))
  }

  /** Whether the file has an entry for a model. */
  has(model: string): boolean {
    return this.#indexOf(model) >= 0
  }

  /** Sets what differs in the entry for a model, which is added where there is none. `entry` is in effect; a new one gets `more`. */
  set(model: string, changes: readonly Difference[], entry: Entry, more: Entry = {}): void {
    const at = this.#at(model, entry, more)
    for (const { field, to } of changes) {
      const [, above, key] = ABOVE.exec(field) ?? []
      if (above !== undefined) this.#setTier(at, Number(above), key!, String(to), entry)
      else if (typeof to === 'string' && field !== 'deprecated_at') this.#setPrice(at, field, to, entry)
      else this.#document.setIn([...at, field], to)
    }
    this.#document.setIn([...at, 'priced_at'], this.#stamp.today)
    this.#document.setIn([...at, 'priced_from'], this.#stamp.label)
  }

  /** The text to write. Throws a Failure where an alias of the file does not survive the change. */
  text(): string {
    const text = this.#document.toString({ lineWidth: 120 })
    if (parseDocument(text).errors.length > 0) {
      throw new Failure(`${this.path}: an entry is repeated by an alias; write it out first. Nothing was written`)
    }
    return text
  }

  #indexOf(model: string): number {
    const { models } = this.#document.toJS({ maxAliasCount: 1000 }) as { models?: unknown }
    return Array.isArray(models) ? models.findIndex(one => (one as Entry | null)?.model === model) : -1
  }

  #at(model: string, entry: Entry, more: Entry): (string | number)[] {
    const index = this.#indexOf(model)
    if (index >= 0) return ['models', index]
    const { id } = entry
    const added = { model, ...(id !== undefined && id !== model && { id }), ...more }
    if (!this.#document.has('models')) this.#document.set('models', this.#document.createNode([]))
    this.#document.addIn(['models'], this.#document.createNode(added))
    return ['models', this.#indexOf(model)]
  }

  /** A list of prices counts as a whole: what it has in effect is written with the first change. */
  #setPrice(at: (string | number)[], key: string, to: string, { pricing = {} }: Entry): void {
    const path = [...at, 'pricing']
    if (!this.#isOwn(path)) this.#document.setIn(path, this.#document.createNode(pricing))
    this.#document.setIn([...path, ...key.split('.')], to)
  }

  #setTier(
    at: (string | number)[],
    above: number,
    key: string,
    to: string,
    { pricing_tiers: tiers = [] }: Entry,
  ): void {
    const path = [...at, 'pricing_tiers']
    if (!this.#isOwn(path)) this.#document.setIn(path, this.#document.createNode(tiers))
    const written = (this.#document.toJS() as { models: Entry[] }).models[at[1] as number]!.pricing_tiers as Entry[]
    const index = written.findIndex(one => Math.abs(Number(one.above_prompt_tokens) - above) <= 1)
    if (index >= 0) {
      this.#document.setIn([...path, index, key], to)
      return
    }
    const all = [...written, { above_prompt_tokens: above, [key]: to }]
    all.sort((a, b) => Number(a.above_prompt_tokens) - Number(b.above_prompt_tokens))
    this.#document.setIn(path, this.#document.createNode(all))
  }

  /** False for what is absent, and for an alias, whose anchor other entries use. */
  #isOwn(path: readonly (string | number)[]): boolean {
    const node = this.#document.getIn(path, true) as { items?: unknown } | undefined
    return node?.items !== undefined
  }
}

/** The file of models that a list has added, with the new ones. */
export function modelsText(text: string | undefined, added: readonly Listed[], { label, today }: Stamp): string {
  const document = parseDocument(text ?? `# Models that \`gatewayctl models sync\` has added.\nmodels: []\n`)
  for (const { id, name, operation, input, context, output } of added) {
    const entry = {
      id,
      name,
      family: id.split(/[-/:.]/)[0] || id,
      input: operation === 'chat' ? ['text', ...input.filter(one => one === 'image')] : ['text'],
      output: operation === 'chat' ? ['text'] : ['embedding'],
      ...(context !== undefined && { context_length: context }),
      ...(output !== undefined && operation === 'chat' && { max_output: output }),
    }
    const node = document.createNode(entry)
    node.commentBefore = ` ${label}, ${today}`
    document.addIn(['models'], node)
  }
  return document.toString({ lineWidth: 120 })
}

/** A manifest that extends the packaged one. */
export const overlayText = (provider: string): string => stringify({ provider, extends: 'packaged', models: [] })

/** The entry of a new offer, before its prices. */
export const offerOf = ({ operation, supports }: Listed): Entry => (operation === 'chat' ? { supports } : {})

/** Every finding that is written, with its provider. */
export const writable = ({
  changed,
  added,
  retired,
}: Comparison): readonly (Finding & { readonly listed?: Listed })[] => [...retired, ...changed, ...added]
