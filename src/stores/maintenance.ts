/** Work on stores besides serving: their schema, backups, restores. Each kind of stores has an implementation. */

/** `present` is undefined where there are no stores yet; `known` is that of this version. */
export interface SchemaState {
  readonly present: number | undefined
  readonly known: number
}

/** All methods reject with a StoreError that says what to do. */
export interface Maintenance {
  /** Name of the stores in messages. */
  readonly name: string
  /** Rejects for a newer schema, and for stores of another program. */
  schema(): Promise<SchemaState>
  /** Applies the missing steps, and creates what is not there. Rejects while a gateway runs on an older schema. */
  migrate(): Promise<SchemaState>
  /** Writes a consistent copy to a new file of mode 0600, while gateways may run. Resolves with its bytes. */
  backup(file: string): Promise<number>
  /**
   * Puts a copy in the place of the stores after checking it. Rejects while a gateway runs on them. Resolves with the
   * file that holds the earlier stores; undefined where there were none.
   */
  restore(file: string): Promise<string | undefined>
}
