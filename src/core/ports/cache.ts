/** Keeps values for a limited time: counts of limits, answers for replay and for later turns, generated images. */

import type { Event } from '../event.ts'

/** Facts about the original answer of a replay from the response cache. */
export interface Replayed {
  readonly provider: string
  readonly model: string
  readonly externalId: string
  /** Log id of the original exchange. */
  readonly logId: string
  readonly at: number
}

/** The folder that generated images are saved to. */
export interface UploadFolder {
  /** Absolute. */
  readonly path: string
  /**
   * Calls `write` where the files of the folder and those `added` have at most `most` bytes together, are not too many, and
   * the organization has its share of them; false where not. One write at a time.
   */
  write(org: string, added: FolderUse, most: number, write: () => Promise<void>): Promise<boolean>
}

/** Files, and the bytes of all. */
export interface FolderUse {
  readonly bytes: number
  readonly files: number
}

/** An entry of the response cache. */
export interface CachedReply extends Replayed {
  readonly events: readonly Event[]
  /** The model as the request named it; an alias has an entry of its own. */
  readonly requestedModel: string
  readonly requestedProvider: string | null
}

/** Caches replies in memory. */
export interface ReplyCache {
  get(key: string, tenant: string): Promise<CachedReply | undefined> | CachedReply | undefined
  /** `tenant` is the organization whose share the entry takes. */
  set(key: string, reply: CachedReply, bytes: number, ttlMs: number, tenant: string): Promise<void> | void
}

/** Keeps parts of answers for later turns of their conversations. Any entry may be lost. */
export interface TurnStore {
  /** Finds the stored entries among the keys. */
  find(
    keys: readonly string[],
    tenant: string,
  ): Promise<ReadonlyMap<string, CachedReply>> | ReadonlyMap<string, CachedReply>
  /** `tenant` is the organization whose share the entry takes. */
  set(key: string, reply: CachedReply, bytes: number, ttlMs: number, tenant: string): void
}
