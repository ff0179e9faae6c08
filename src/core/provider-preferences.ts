/** The provider preferences of a request: allowed providers and their order (docs/routing.md#routing-by-request). */
export interface ProviderPreferences {
  /** Ids: these first, in this order. */
  readonly order?: readonly string[]
  /** Ids: no others. */
  readonly only?: readonly string[]
  /** Ids: none of these. */
  readonly ignore?: readonly string[]
  /** False: `order` is all that may be called; without it, one provider is. */
  readonly allow_fallbacks?: boolean
  /** USD per million tokens, decimal. */
  readonly max_price?: { readonly prompt?: string; readonly completion?: string }
  readonly sort?: 'price' | 'throughput' | 'latency'
}
