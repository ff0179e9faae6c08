/**
 * The schema, as the numbered steps that lead to it: step n brings `PRAGMA user_version` from n - 1 to n. A step that
 * has shipped is never edited: add another one. Money is integer nano-USD, times are Unix milliseconds. Request rows
 * and hourly sums outlive what they name, so they reference nothing.
 */
import { step as start } from './migrations/1-start.ts'
import { step as trees } from './migrations/2-trees.ts'
import { step as accounts } from './migrations/3-accounts.ts'
import { step as policy } from './migrations/4-policy.ts'
import { step as narrowing } from './migrations/5-narrowing.ts'
import { step as checks } from './migrations/6-checks.ts'
import { step as successors } from './migrations/7-successors.ts'
import { step as parameters } from './migrations/8-parameters.ts'
import { step as promptCache } from './migrations/9-prompt-cache.ts'
import { step as jobs } from './migrations/10-jobs.ts'
import { step as reports } from './migrations/11-reports.ts'
import { step as oauth } from './migrations/12-oauth.ts'
import { step as responses } from './migrations/13-responses.ts'
import { step as jobClaims } from './migrations/14-job-claims.ts'
import { step as realtime } from './migrations/15-realtime.ts'
import { step as sessionResponses } from './migrations/16-session-responses.ts'
import { step as unclaimedJobs } from './migrations/17-unclaimed-jobs.ts'
import { step as spent } from './migrations/18-spent.ts'
import { step as eventClaims } from './migrations/19-event-claims.ts'
import { step as growingTables } from './migrations/20-growing-tables.ts'
import { step as jobOwners } from './migrations/21-job-owners.ts'
import { step as jobSessions } from './migrations/22-job-sessions.ts'

/** SQL; the step at index n leads to version n + 1. */
export const migrations: readonly string[] = [
  start,
  trees,
  accounts,
  policy,
  narrowing,
  checks,
  successors,
  parameters,
  promptCache,
  jobs,
  reports,
  oauth,
  responses,
  jobClaims,
  realtime,
  sessionResponses,
  unclaimedJobs,
  spent,
  eventClaims,
  growingTables,
  jobOwners,
  jobSessions,
]
