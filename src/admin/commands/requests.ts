/** The request log: `requests.list` and `requests.show`. */
import { formatMoney, parseMoney } from '../../core/money.ts'
import type { AttemptRecord, RequestRow } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import { amount, durationOf, keyId, organization, project, scopeOf } from '../arguments.ts'
import { type CommandTable, command, facts, option, shell, rows as tableOf } from '../command.ts'

const DEFAULT_ROWS = 50
const MAX_ROWS = 500

const text = s.string({ minLength: 1, maxLength: 256 })
const tagPair = s.string({ pattern: '^[^=]+=', maxLength: 577, description: 'a tag such as team=blue' })
const time = s.string({ pattern: '^[1-9]\\d{0,7}(ms|[smhdw])$', description: 'a time such as 500ms, 2s, 1h or 7d' })
const millisecondsOf = (given: string): number =>
  given.endsWith('ms') ? Number(given.slice(0, -2)) : durationOf(given)

/** Arguments that select rows. */
const requestFilters = {
  organization: option('--org <org>: only this organization', organization),
  project: option('--project <project>: only this project', project),
  key: option('--key <id>: only this key', keyId),
  model: option('--model <model>: only this model, as it was asked for or as it answered', text),
  provider: option('--provider <id>: only requests that this provider ended', text),
  status: option('--status <code>: only this HTTP status', s.integer({ minimum: 100, maximum: 599 })),
  error: option('--error <code>: only this error code', text),
  tag: option('--tag <key=value>: only requests with this tag', tagPair),
  endUser: option('--end-user <name>: only requests of this end user', text),
  slower: option('--slower <time>: only requests that took longer, such as 2s', time),
  dearer: option('--dearer <usd>: only requests that cost more', amount),
  since: option('--since <time>: only requests that arrived within this time, such as 1h', time),
}

/** A row as JSON. */
const shownRow = (row: RequestRow) => ({
  id: row.id,
  request_id: row.requestId,
  at: new Date(row.at).toISOString(),
  org: row.orgId,
  project: row.projectId,
  key: row.keyId,
  end_user: row.endUser ?? null,
  tags: row.tags ?? {},
  endpoint: row.endpoint,
  requested_model: row.requestedModel,
  used_model: row.model,
  used_provider: row.provider,
  status: row.status,
  error_code: row.errorCode,
  outcome: row.outcome,
  streamed: row.streamed,
  cached: row.cached,
  duration_ms: row.durationMs,
  ttft_ms: row.ttftMs,
  usage: row.usage,
  cost: row.cost === null ? null : formatMoney(row.cost),
  held: row.detail?.held ?? null,
})
/** A row of the request log, as commands answer it. */
export type ShownRequest = ReturnType<typeof shownRow>

const shownDetail = (row: RequestRow) => ({
  ...shownRow(row),
  estimated: row.estimated,
  tier: row.tier,
  source: row.source,
  attempts: row.detail?.attempts ?? [],
})
const attemptTable = tableOf<AttemptRecord>(
  'provider, model, status, started ms, connected ms, first token ms, ended after ms, credential, reason',
  ({ provider, model, status, started_ms, connect_ms, ttft_ms, duration_ms, credential, reason }) => {
    return [provider, model, status, started_ms, connect_ms, ttft_ms, duration_ms, credential, reason]
  },
)
/** One request with its attempts. */
export type RequestDetails = ReturnType<typeof shownDetail> & {
  /** Null where none is kept; absent where it was not asked for. */
  readonly content?: unknown
}

/** `requests.*`. */
export const requestCommands: CommandTable = {
  /**
   * → `{rows, next}`, newest first. `next` is the `before` of the following part, null behind the last one. A part looks
   * at a bounded number of rows, so that it may have fewer than `limit` rows, or none, and not be the last.
   */
  'requests.list': command(
    s.object({
      ...requestFilters,
      endedSince: s.optional(s.integer({ minimum: 0, description: 'Unix milliseconds' })),
      before: s.optional(text),
      limit: s.optional(s.integer({ minimum: 1, maximum: MAX_ROWS, description: `a count from 1 to ${MAX_ROWS}` })),
    }),
    async (args, { requests, names }) => {
      const { model, provider, status, error, slower, dearer, since, tag, endUser } = args
      const filter = {
        ...(await scopeOf(args, names)),
        ...{ model, provider, status, errorCode: error, tag, endUser, endedSince: args.endedSince },
        slower: slower === undefined ? undefined : millisecondsOf(slower),
        dearer: dearer === undefined ? undefined : parseMoney(dearer),
        since: since === undefined ? undefined : Date.now() - millisecondsOf(since),
      }
      const { rows, next } = await requests.page(filter, args.limit ?? DEFAULT_ROWS, args.before)
      return { rows: rows.map(shownRow), next: next ?? null }
    },
  ),
  /** → the row with `attempts`. */
  'requests.show': command(
    s.object({
      id: shell('<id>: id of the row, as requests list shows it', text),
      content: option('--content: also what was asked and answered, where the project keeps it', s.boolean()),
    }),
    async ({ id, content }, { requests, contents }): Promise<RequestDetails> => {
      const row = await requests.get(id)
      if (row && content) return { ...shownDetail(row), content: JSON.parse((await contents.find(id)) ?? 'null') }
      if (row) return shownDetail(row)
      throw errors.notFound(`There is no row "${id}" in the request log. It shows ended requests until they expire.`)
    },
    'show one request with its attempts',
    showDetails,
  ),
}

const contentText = (content: unknown): string =>
  content === undefined ? '' : content === null ? 'no content is kept\n' : `${JSON.stringify(content, null, 2)}\n`

function showDetails({ usage, attempts, tags, content, ...row }: RequestDetails): string {
  const entries = Object.entries(row).map(([name, value]) => [name, value === null ? null : String(value)] as const)
  const counts = Object.entries(usage).map(([axis, count]) => `${axis} ${count}`)
  const labels = Object.entries(tags).map(([key, value]) => `${key}=${value}`)
  return (
    facts([...entries, ['tags', labels.join(', ')], ['usage', counts.join(', ')]]) +
    (attempts.length > 0 ? attemptTable(attempts) : '') +
    contentText(content)
  )
}
