/** `gatewayctl audit`. */
import { type Command, InvalidArgumentError } from 'commander'
import type { AuditEntry } from '../core/ports.ts'
import type { Open } from './session.ts'
import { table } from './table.ts'

type Facts = Readonly<Record<string, unknown>>

const isFacts = (value: unknown): value is Facts => typeof value === 'object' && value !== null

/** Changed fields: `name: a → b`. */
function differences({ before, after }: AuditEntry): string {
  const was: Facts = isFacts(before) ? before : {}
  const became: Facts = isFacts(after) ? after : {}
  const show = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value ?? null))
  return [...new Set([...Object.keys(was), ...Object.keys(became)])]
    .filter(name => show(was[name]) !== show(became[name]))
    .map(name =>
      isFacts(before) ? `${name}: ${show(was[name])} → ${show(became[name])}` : `${name}: ${show(became[name])}`,
    )
    .join(', ')
}

const showEntries = (entries: readonly AuditEntry[]): string =>
  table(
    ['id', 'at', 'who', 'what', 'organization', 'subject', 'change'],
    entries.map(entry => [
      entry.id,
      entry.at.slice(0, 19),
      entry.actor,
      entry.action,
      entry.organization,
      entry.subject,
      differences(entry),
    ]),
  )

function whole(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError(`"${text}" is not a whole number above zero`)
}

/** Adds `audit`. */
export function addAudit(program: Command, open: Open): void {
  program
    .command('audit')
    .description('list changes and who made them, newest first')
    .option('--org <org>', 'only changes of this organization')
    .option('--limit <count>', 'number of entries (default: 50)', whole)
    .option('--before <id>', 'only entries older than this one', whole)
    .action(async ({ org: organization, limit, before: beforeId }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<AuditEntry[]>('audit', { organization, limit, beforeId }), showEntries)
    })
}
