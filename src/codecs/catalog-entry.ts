/** An entry of the catalogue, as every form of the catalogue reads it. */

/** Fields read from an entry of the catalogue (docs/contract.md#catalogue). */
export interface CatalogEntry {
  readonly id: string
  readonly display_name: string
  readonly description: string
  readonly created: number
  readonly architecture: { readonly output_modalities: readonly string[] }
  readonly operations: readonly string[]
  readonly supported_parameters: readonly string[]
  readonly context_length?: number | undefined
  readonly max_output?: number | undefined
  readonly deprecated_at?: string | undefined
  readonly deactivated_at?: string | undefined
}
