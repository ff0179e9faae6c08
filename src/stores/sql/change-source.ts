/** Whether cached values still match the database. */

/** Tells one cache of changes by other processes; of its own process's changes it learns separately. */
export interface ChangeSource {
  /** Says whether something has changed since the last call; `lost` when the database has not answered for too long. */
  poll(): 'same' | 'changed' | 'lost'
  /** Whether the database has been unreadable for longer than cached values may be served. */
  readonly lost: boolean
}
