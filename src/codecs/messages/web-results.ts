/** Cited sources of providers that do not show their search in blocks of this wire (docs/contract.md#messages). */
import type { Event } from '../../core/event.ts'
import { textKey, valueKey } from '../../json/text-key.ts'

type Block = Record<string, unknown>
type Native = Extract<Event, { type: 'native' }>
type Source = Extract<Event, { type: 'source' }>

/** Block types of this wire; others are marked with their provider, the only reader. */
const OWN_TYPES = /^(server_tool_use|mcp_tool_use|container_upload|compaction|fallback|.+_tool_result)$/

/** Collects sources, and the results that are shown already, over one answer. */
export class WebResults {
  readonly #id: string
  readonly #sources = new Map<string, string>()
  /** Addresses shown by a provider's own result blocks. */
  readonly #shown = new Set<string>()
  /** Server tools that were called and have no result yet. */
  readonly #called = new Set<unknown>()
  #isOwn = false

  constructor(id: string) {
    this.#id = `srvtoolu_${id}`
  }

  source({ url, title = '' }: Source): void {
    if (!this.#sources.has(url)) this.#sources.set(url, title)
  }

  /** The block in its visible form. */
  native({ block, provider }: Native): Block {
    const { type, id, tool_use_id: answered, content } = block
    if (type === 'server_tool_use') this.#called.add(valueKey(id))
    this.#called.delete(valueKey(answered))
    for (const result of Array.isArray(content) ? content : []) {
      const url: unknown = (result as { url?: unknown } | null)?.url
      if (typeof url === 'string') this.#shown.add(textKey(url))
    }
    return typeof type === 'string' && OWN_TYPES.test(type) ? block : { ...block, provider }
  }

  /** True while a server tool has no result: the answer continues when the client sends the turn back. */
  get unanswered(): boolean {
    return this.#called.size > 0
  }

  /** The provider writes blocks of this wire: what it searched, in this turn or an earlier one, it shows itself. */
  showsSearches(): void {
    this.#isOwn = true
  }

  /** One search with all sources that no other block shows. */
  blocks(): Block[] {
    if (this.#isOwn) return []
    const found = [...this.#sources].filter(([url]) => !this.#shown.has(textKey(url)))
    if (found.length === 0) return []
    return [
      { type: 'server_tool_use', id: this.#id, name: 'web_search', input: {} },
      {
        type: 'web_search_tool_result',
        tool_use_id: this.#id,
        content: found.map(([url, title]) => ({
          type: 'web_search_result',
          url,
          title,
          encrypted_content: '',
          page_age: null,
        })),
      },
    ]
  }
}
