/**
 * The schema on PostgreSQL, as the numbered steps that lead to it. A step that has shipped is never edited: add another
 * one. Money is bigint nano-USD, times are Unix milliseconds, texts are compared by their bytes. A step only adds, so that
 * the version before it goes on running beside it; what is not used any more goes a version later. Functions carry their
 * version in their names for the same reason.
 */
import { step as ledger } from './1-ledger.ts'
import { step as functions } from './2-functions.ts'
import { step as accounts } from './3-accounts.ts'
import { step as stored } from './4-stored.ts'
import { step as jobs } from './5-jobs.ts'

/** SQL; the step at index n leads to version n + 1. */
export const migrations: readonly string[] = [ledger, functions, accounts, stored, jobs]
