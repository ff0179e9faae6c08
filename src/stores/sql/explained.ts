/** Errors of a database as callers get them. */
import { errors } from '../../lib/error.ts'

/** The result, or a rejection with `billing_unavailable`. */
export async function explained<T>(result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (cause) {
    throw errors.billingUnavailable(cause)
  }
}
