/** The catalogue in the form of Google's API. */
import { errors } from '../../lib/error.ts'
import { perObject } from '../../lib/per-object.ts'
import type { CatalogEntry } from '../catalog-entry.ts'

const DEFAULT_MODELS = 50
const MAX_MODELS = 1000

interface ModelInfo {
  readonly name: string
  readonly baseModelId: string
  readonly version: string
  readonly displayName: string
  readonly description: string
  readonly inputTokenLimit?: number
  readonly outputTokenLimit?: number
  readonly supportedGenerationMethods: readonly string[]
  readonly thinking: boolean
}

/** Method names by operation. */
const METHODS: Readonly<Record<string, readonly string[]>> = {
  chat: ['generateContent', 'streamGenerateContent', 'countTokens'],
  embeddings: ['embedContent', 'batchEmbedContents'],
}

/** One model in the form of this wire. */
export const modelInfo = (entry: CatalogEntry): ModelInfo => ({
  name: `models/${entry.id}`,
  baseModelId: entry.id,
  version: '001',
  displayName: entry.display_name,
  description: entry.description,
  ...(entry.context_length !== undefined && { inputTokenLimit: entry.context_length }),
  ...(entry.max_output !== undefined && { outputTokenLimit: entry.max_output }),
  supportedGenerationMethods: methodsOf(entry),
  thinking: entry.supported_parameters.includes('reasoning'),
})

/** `operations`: those of the provider, when the model lists none; its output modalities select among them. */
function methodsOf({ operations, architecture: { output_modalities: output } }: CatalogEntry): readonly string[] {
  const fits = (operation: string) => output.includes('embedding') === (operation === 'embeddings')
  return operations.filter(fits).flatMap(operation => METHODS[operation] ?? [])
}

/** Built once per listing, which itself is built once per view. */
const infosOf = perObject((listing: Buffer): readonly ModelInfo[] => {
  const { data } = JSON.parse(listing.toString('utf8')) as { data: CatalogEntry[] }
  return data.map(modelInfo)
})

/** The page of `listing`, the catalogue as JSON, that `query` requests. Throws a 400 for an invalid size or token. */
export function modelPage(listing: Buffer, query: URLSearchParams): object {
  const all = infosOf(listing)
  const size = sizeOf(query.get('pageSize') ?? query.get('page_size'))
  const start = placeOf(all, query.get('pageToken') ?? query.get('page_token'))
  const models = all.slice(start, start + size)
  const hasMore = start + size < all.length
  return { models, ...(hasMore && { nextPageToken: tokenOf(models.at(-1)!) }) }
}

/** Capped at the maximum; the default for an absent size or 0. */
function sizeOf(text: string | null): number {
  const size = text === null || text === '' ? 0 : Number(text)
  if (Number.isInteger(size) && size >= 0) return Math.min(size || DEFAULT_MODELS, MAX_MODELS)
  throw errors.invalidField('pageSize', 'must be an integer of 0 or more.')
}

/** Contains the last model of its page. */
const tokenOf = ({ name }: ModelInfo): string => Buffer.from(name, 'utf8').toString('base64url')

function placeOf(all: readonly ModelInfo[], mark: string | null): number {
  if (mark === null || mark === '') return 0
  const name = Buffer.from(mark, 'base64url').toString('utf8')
  const place = all.findIndex(model => model.name === name)
  if (place >= 0) return place + 1
  throw errors.invalidField('pageToken', 'does not belong to this list. Start again without it.')
}
