/** Content of requests and answers, where their project keeps it for a time. Nothing is readable at rest. */

/** Content of one request, as JSON. */
export interface ContentRecord {
  /** Names the request's row too. */
  readonly id: string
  readonly orgId: string
  readonly projectId: string
  /** Unix milliseconds. */
  readonly createdAt: number
  readonly content: string
}

/** Everything rejects when the store fails. */
export interface ContentStore {
  add(record: ContentRecord): Promise<void>
  /** Undefined where none is kept, or no longer: by the time of its project, or since its organization keeps no data. */
  find(id: string): Promise<string | undefined>
  /** Removes, some at a time, what is past its time, and all of organizations without data retention. Returns how many. */
  prune(): Promise<number>
}
