/** Responses that a project stores for a time, so that later requests can continue them. Nothing is readable at rest. */

/** Owner of stored responses. */
export interface ResponseOwner {
  readonly orgId: string
  readonly projectId: string
  /** Session of the end user who owns the responses; undefined for keys, which reach all responses of their project. */
  readonly session: string | undefined
}

/** A stored response. */
export interface ResponseRecord {
  readonly id: string
  /** Id of the response that it continues. */
  readonly previousId: string | null
  /** Unix milliseconds. */
  readonly createdAt: number
  /** JSON of what its request added to the conversation, and of what the answer did. */
  readonly turn: string
  /** JSON of the rest of the answer. */
  readonly answer: string
}
/** The part of a response that a continuing request needs. */
export type ResponseTurn = Pick<ResponseRecord, 'previousId' | 'turn'>

/** How much an organization may store. */
export interface ResponseShare {
  /** Each response counts its texts and 512 bytes. */
  readonly bytes: number
  /** The part of them that one end user's session may store. */
  readonly session: number
  /** Oldest responses that may be removed to make room for one. */
  readonly dropped: number
}

/** Everything rejects with a GatewayError 503 when the store fails. */
export interface ResponseStore {
  /**
   * Durable once it resolves. Where the organization exceeds its share, its oldest responses are removed; false, and
   * nothing is stored, where that makes too little room.
   */
  add(record: ResponseRecord, owner: ResponseOwner, share: ResponseShare): Promise<boolean>
  /** `since`: Unix milliseconds; what was made earlier is not found. */
  find(id: string, owner: ResponseOwner, since: number): Promise<ResponseRecord | undefined>
  /** Finds the turn without its answer. */
  findTurn(id: string, owner: ResponseOwner, since: number): Promise<ResponseTurn | undefined>
  /** False where it was not there. */
  remove(id: string, owner: ResponseOwner, since: number): Promise<boolean>
  /** Removes, some at a time, what is past its time, and all of organizations without data retention. Returns how many. */
  prune(): Promise<number>
}
