/** Errors of a database as callers get them. */
import { errors } from '../../lib/error.ts'

/** Returns a function that runs work on a database, and rejects with what `error` makes of its failure. */
export const rejectingWith =
  (error: (cause: unknown) => Error) =>
  async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (cause) {
      throw error(cause)
    }
  }

/** Rejects with `billing_unavailable`. */
export const explained = rejectingWith(errors.billingUnavailable)
