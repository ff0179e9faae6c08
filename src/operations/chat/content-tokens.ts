/** Tokens of one piece of media, and how sure they are. */

export interface ContentTokens {
  readonly tokens: number
  /** What more it may have. */
  readonly unmeasured: number
  readonly pages: number
}

/** Of a file of unknown size, and of audio at an address: the longest prompt that models read. */
export const UNMEASURED_TOKENS = 1_048_576

export const known = (tokens: number, pages = 0): ContentTokens => ({ tokens, unmeasured: 0, pages })
export const likely = (tokens: number): ContentTokens => ({ tokens, unmeasured: UNMEASURED_TOKENS, pages: 0 })

/** Of what readers may read as either. */
export const dearest = (one: ContentTokens, other: ContentTokens): ContentTokens => ({
  tokens: Math.max(one.tokens, other.tokens),
  unmeasured: Math.max(one.unmeasured, other.unmeasured),
  pages: Math.max(one.pages, other.pages),
})
