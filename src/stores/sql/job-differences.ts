/** Checks of jobs against the ledger, as a part of those of all books. */
import { JOBS_OWNER } from '../rules/jobs.ts'

/**
 * SQL: a sentence for each job that differs from the ledger. A running one has one hold of its amount. An ended one has
 * none and is charged its cost at most once.
 */
export const JOB_DIFFERENCES = `
  SELECT 'job ' || jobs.id || ': '
    || CASE WHEN completed_at IS NULL THEN 'no hold of its amount' ELSE 'a hold though it has ended' END AS difference
  FROM jobs LEFT JOIN holds ON holds.id = hold_id
  WHERE CASE WHEN completed_at IS NULL
    THEN holds.amount IS DISTINCT FROM jobs.amount OR (state <> 'creating' AND holds.owner <> '${JOBS_OWNER}')
    ELSE holds.id IS NOT NULL END
  UNION ALL
  SELECT 'job ' || jobs.id || ': charged ' || -ledger.amount || ', though it cost ' || coalesce(cost, 0)
  FROM jobs JOIN ledger ON ledger.request_id = log_id AND ledger.kind = 'charge'
  WHERE jobs.funds = 'credits' AND -ledger.amount < coalesce(cost, 0)`
