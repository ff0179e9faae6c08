/** Answers that a project keeps for a while, so that later requests can go on from them. Nothing of them is readable at rest. */

/** Whose responses are meant. */
export interface ResponseOwner {
  readonly orgId: string
  readonly projectId: string
  /** Of an end user, whose own they are; undefined for keys, which reach all responses of their project. */
  readonly session: string | undefined
}

export interface ResponseRecord {
  readonly id: string
  /** The response that it goes on from. */
  readonly previousId: string | null
  /** Unix milliseconds. */
  readonly createdAt: number
  /** JSON of what its request added to the conversation, and of what the answer did. */
  readonly turn: string
  /** JSON of the rest of the answer. */
  readonly answer: string
}
export type ResponseTurn = Pick<ResponseRecord, 'previousId' | 'turn'>

/** How much an organization may keep. */
export interface ResponseShare {
  /** Each response counts its texts and 512 bytes. */
  readonly bytes: number
  /** So many of its oldest may go to make room for one. */
  readonly dropped: number
}

/** Everything rejects with a GatewayError 503 when the store fails. */
export interface ResponseStore {
  /**
   * Durable once it resolves. Where the organization passes its share, its oldest responses go; false, and the response
   * is not kept, where that makes too little room.
   */
  add(record: ResponseRecord, owner: ResponseOwner, share: ResponseShare): Promise<boolean>
  /** `since`: what was made earlier, Unix milliseconds, is not there any more. */
  find(id: string, owner: ResponseOwner, since: number): Promise<ResponseRecord | undefined>
  /** The same without the answer. */
  findTurn(id: string, owner: ResponseOwner, since: number): Promise<ResponseTurn | undefined>
  /** False where it was not there. */
  remove(id: string, owner: ResponseOwner, since: number): Promise<boolean>
  /** Drops, some at a time, what no project keeps any longer, and all of organizations that keep no data. Returns how many. */
  prune(): Promise<number>
}
