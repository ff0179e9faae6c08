/** `gatewayctl requests`: the log of requests, as a list, one by one, as they end, or as a file. */
import { setTimeout as wait } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { rows } from '../admin/command.ts'
import type { ShownRequest } from '../admin/commands/requests.ts'
import { addArguments, addFamily, whole } from './commands.ts'
import type { Arguments } from './inputs.ts'
import type { Open, Session } from './session.ts'

interface Part {
  readonly rows: readonly ShownRequest[]
  readonly next: string | null
}

const ROWS_PER_QUERY = 500
const DEFAULT_ROWS = 50
/** Limits how long a request may run and still be shown by `tail` when it ends, without `--since`. */
const TAIL_WINDOW_MS = 15 * 60_000
const TAIL_INTERVAL_MS = 2000

/** Adds `requests`. */
export function addRequests(program: Command, open: Open): void {
  addFamily(program, open, 'requests.show')
  const group = program.commands.find(one => one.name() === 'requests')!
  /** Adds a command that takes the filters of the admin listener. */
  const add = (name: string, about: string) => {
    const command = group.command(name).description(about)
    return { command, filters: addArguments(command, 'requests.list') }
  }

  const list = add('list', 'list requests that have ended, newest first')
  list.command
    .option('--limit <count>', `number of requests (default: ${DEFAULT_ROWS})`, text => whole(text, 1))
    .action(async ({ limit = DEFAULT_ROWS }: { readonly limit?: number }, command: Command) => {
      const session = open(command)
      const found: ShownRequest[] = []
      for await (const part of partsOf(session, list.filters(), limit)) found.push(...part)
      session.print(found.slice(0, limit), showRows)
    })

  const following = add('tail', 'show requests as they end, until interrupted')
  following.command.action(async (_, command: Command) => {
    const session = open(command)
    for await (const ended of tail(session, following.filters())) {
      session.io.out(session.json ? lines(ended) : showRows(ended))
    }
  })

  const exported = add('export', 'write requests to standard output, newest first')
  exported.command
    .addOption(new Option('--format <format>', 'format of the output').choices(['ndjson', 'csv']).default('ndjson'))
    .action(async ({ format }: { readonly format: 'ndjson' | 'csv' }, command: Command) => {
      const session = open(command)
      if (format === 'csv') session.io.out(`${COLUMNS.join(',')}\r\n`)
      for await (const part of partsOf(session, exported.filters())) {
        session.io.out(format === 'csv' ? part.map(csvOf).join('') : lines(part))
      }
    })
}

/** Yields parts of the log, newest first, until `limit` rows are there. */
async function* partsOf({ admin }: Session, filters: Arguments, limit = Number.MAX_SAFE_INTEGER) {
  let missing = limit
  let before: string | null | undefined
  do {
    const args = { ...filters, limit: Math.min(ROWS_PER_QUERY, missing), ...(before && { before }) }
    const part: Part = await admin.command<Part>('requests.list', args)
    if (part.rows.length > 0) yield part.rows
    missing -= part.rows.length
    before = part.next
  } while (before !== null && missing > 0)
}

/** Yields the requests that ended since the last look, oldest first. The first look only says where the others begin. */
export async function* tail(session: Session, filters: Arguments, pause: (ms: number) => Promise<unknown> = wait) {
  let shown = new Map<string, number>()
  for (let isFirst = true; ; isFirst = false) {
    const now = Date.now()
    const fresh: ShownRequest[] = []
    const recent = {
      ...filters,
      since: filters.since ?? `${TAIL_WINDOW_MS / 60_000}m`,
      endedSince: now - 10 * TAIL_INTERVAL_MS,
    }
    for await (const part of partsOf(session, recent)) fresh.push(...part.filter(({ id }) => !shown.has(id)))
    shown = new Map([...shown].filter(([, at]) => at > now - TAIL_WINDOW_MS))
    for (const { id } of fresh) shown.set(id, now)
    if (!isFirst && fresh.length > 0) yield fresh.reverse()
    await pause(TAIL_INTERVAL_MS)
  }
}

const showRows = rows<ShownRequest>(
  'id, at, key, model, provider, status, error, ms, first token ms, cost USD',
  ({ id, at, key, requested_model, used_model, used_provider, status, error_code, duration_ms, ttft_ms, cost }) => {
    return [
      ...[id, at.slice(0, 19), key, used_model ?? requested_model, used_provider, status, error_code],
      ...[duration_ms, ttft_ms, cost],
    ]
  },
  'no requests\n',
)

const lines = (part: readonly ShownRequest[]): string => part.map(row => `${JSON.stringify(row)}\n`).join('')

const COLUMNS = [
  ...(['id', 'request_id', 'at', 'org', 'project', 'key', 'end_user', 'tags', 'endpoint', 'requested_model'] as const),
  ...(['used_model', 'used_provider', 'status', 'error_code', 'outcome', 'streamed', 'cached'] as const),
  ...(['duration_ms', 'ttft_ms', 'usage', 'cost', 'held'] as const),
]

/** A row of RFC 4180; objects are JSON. A spreadsheet takes no cell for a formula. */
const csvOf = (row: ShownRequest): string => `${COLUMNS.map(name => cellOf(row[name])).join(',')}\r\n`

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
