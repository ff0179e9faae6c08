/** Run by the build: pages of docs/reference, from the schemas, the errors, the metrics and the commands. */
import type { Command } from 'commander'
import { exitCodes } from '../cli/exit-codes.ts'
import { buildProgram } from '../cli/program.ts'
import type { JsonSchema } from '../core/schema.ts'
import { endpoints } from '../endpoints/index.ts'
import { documentOf } from '../openapi/document.ts'
import { codesByStatus } from '../openapi/errors.ts'
import { Lag } from '../telemetry/load.ts'
import { PrometheusMetrics } from '../telemetry/metrics.ts'
import { reportHealth } from './health-metrics.ts'
import { optionsIn, type Purposes } from './reference-options.ts'

/** Texts that code does not hold: files of build/reference. */
export interface ReferenceTexts {
  readonly options: Purposes
  /** Remedies for a caller, by code: those of answers with a status, and the others by the heading of their table. */
  readonly errors: { readonly answers: Remedies; readonly elsewhere: Readonly<Record<string, Remedies>> }
  /** Meanings by the name of a header. */
  readonly headers: Readonly<Record<keyof typeof SENDERS, Readonly<Record<string, string>>>>
}

type Remedies = Readonly<Record<string, string>>
type Row = readonly string[]

/** The pages by file name. */
export async function referencePages(
  schemas: Readonly<Record<string, JsonSchema>>,
  texts: ReferenceTexts,
): Promise<Record<string, string>> {
  return {
    'configuration.md': configuration(schemas, texts.options),
    'errors.md': errorPage(texts.errors),
    'metrics.md': page('Metrics', ['Series', 'Type', 'Labels', 'Meaning'], await metricRows()),
    'api.md': head('Operations of the API') + apiPage(documentOf(endpoints, { version: '', realtime: true }), table),
    'commands.md': commandPage(buildProgram({ env: {}, cwd: '', out: () => {}, err: () => {} })),
    'headers.md': [
      head('Headers'),
      ...Object.entries(texts.headers).map(([kind, names]) => {
        const rows = Object.entries(names).map(([name, says]) => [code(name), says])
        return `## ${SENDERS[kind as keyof typeof SENDERS]}\n\n${table(['Header', 'Meaning'], rows)}`
      }),
    ].join('\n'),
  }
}

const head = (title: string): string => `# ${title}\n\nWritten by \`npm run schemas\`; changes to this page are lost.\n`
const code = (text: string): string => `\`${text}\``
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
const table = (names: Row, rows: readonly Row[]): string =>
  [names, names.map(() => '---'), ...rows].map(row => `| ${row.map(cell).join(' | ')} |\n`).join('')
const byName = ([a]: readonly unknown[], [b]: readonly unknown[]): number => (String(a) < String(b) ? -1 : 1)
const page = (title: string, names: Row, rows: readonly Row[]): string => `${head(title)}\n${table(names, rows)}`

const SENDERS = {
  request: 'Request headers',
  answer: 'Answer headers',
  callback: 'Headers of calls to a callback',
  admin: 'Headers of the admin API and the page',
} as const

const FILES: Readonly<Record<string, string>> = {
  gateway: 'gateway.yaml',
  filters: 'Options of filters, in chains and below endpoints',
  models: 'models.d/*.yaml',
  routes: 'routes.d/*.yaml',
  provider: 'providers.d/*.yaml',
}

function configuration(schemas: Readonly<Record<string, JsonSchema>>, purposes: Purposes): string {
  const sections = optionsIn(schemas, purposes)
  const parts = Object.entries(sections).map(([name, options]) => {
    const rows = options.map(({ path, type, fallback, purpose }) => [code(path), type, fallback, purpose])
    return `\n## ${FILES[name]}\n\n${table(['Option', 'Type', 'Default', 'Purpose'], rows)}`
  })
  return head('Configuration') + parts.join('')
}

function errorPage({ answers, elsewhere }: ReferenceTexts['errors']): string {
  const tables = Object.entries(elsewhere).map(([heading, remedies]) => {
    const rows = Object.entries(remedies).toSorted(byName)
    return `\n## ${heading}\n\n${table(
      ['Code', 'What to do'],
      rows.map(([name, says]) => [code(name), says]),
    )}`
  })
  const first = page('Errors', ['Code', 'Status', 'What to do'], errorRows(answers))
  return `${first}\n${PASSED_ON}\n${tables.join('')}`
}

const PASSED_ON =
  'A 400 of a provider may have a code of that provider. A request that fails for no known reason has status 500 and no code.'

function errorRows(remedies: Remedies): Row[] {
  const statuses = new Map<string, number[]>()
  for (const [status, codes] of codesByStatus()) {
    for (const name of codes) statuses.set(name, [...(statuses.get(name) ?? []), status])
  }
  return [...statuses].toSorted(byName).map(([name, all]) => [code(name), all.sort().join(', '), remedies[name] ?? ''])
}

async function metricRows(): Promise<Row[]> {
  const lag = new Lag()
  const metrics = new PrometheusMetrics({ version: '', lag })
  reportHealth({
    database: 'gateway.db',
    metrics,
    memory: () => 0,
    ping: async () => {},
    redis: { up: true, nodes: 1 },
    providers: () => [],
  })
  metrics.connections(() => 0)
  metrics.overdraft(async () => 0)
  metrics.jobCounts(async () => ({ running: [], bytes: 0 }))
  const all = await metrics.described()
  lag.close()
  // The library's series of the process and of Node depend on the system.
  const own = all.filter(({ name }) => name.startsWith('gateway_'))
  const rows = own.map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(', '), help])
  return rows.toSorted(byName)
}

function commandPage(top: Command): string {
  const parts = [head('Commands'), '', table(['Option of every command', 'Meaning'], optionRows(top))]
  parts.push('', table(['Exit code', 'Meaning'], exitCodes))
  const walk = (command: Command, path: string): void => {
    for (const sub of command.commands) walk(sub, `${path} ${sub.name()}`)
    if (command.commands.length > 0) return
    const usage = command.registeredArguments.map(one => (one.required ? `<${one.name()}>` : `[${one.name()}]`))
    parts.push(`\n## ${[path.trim(), ...usage].join(' ')}\n\n${command.description()}\n`)
    if (command.options.length > 0) parts.push(`\n${table(['Option', 'Meaning'], optionRows(command))}`)
  }
  walk(top, '')
  return parts.join('\n').replaceAll(/\n{3,}/g, '\n\n')
}

const optionRows = (command: Command): Row[] =>
  command.options.filter(({ hidden }) => !hidden).map(({ flags, description }) => [code(flags), description])

type Table = (names: readonly string[], rows: readonly (readonly string[])[]) => string

/** The parts of a document that the page shows. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly tags: readonly { readonly name: string }[]
}
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Contents }
  readonly responses: Readonly<Record<string, Answer>>
}
interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description: string
}
interface Answer {
  readonly $ref?: string
  readonly description: string
  readonly content?: Contents
}
type Contents = Readonly<Record<string, { readonly schema?: Named }>>
interface Named {
  readonly $ref?: string
  readonly anyOf?: readonly Named[]
}

/** The page of all operations by their groups; each has a table of its parameters, body and answers. */
function apiPage(document: object, table: Table): string {
  const { paths, tags }: Document = JSON.parse(JSON.stringify(document))
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const parts = tags.map(({ name }) => {
    const own = all.filter(({ operation }) => operation.tags[0] === name)
    const operations = own.map(({ path, method, operation }) => {
      const { operationId, summary, description } = operation
      const rows = [...parametersOf(operation), ...bodiesOf(operation), ...answersOf(operation)]
      const about = [`${summary}. Name in clients: \`${operationId}\`.`, ...(description ? [description] : [])]
      return `### ${method} ${path}\n\n${about.join(' ')}\n\n${table(['Part', 'What it is'], rows)}`
    })
    return `\n## ${name}\n\n${operations.join('\n')}`
  })
  return parts.join('')
}

const parametersOf = ({ parameters }: Operation): string[][] =>
  parameters.map(one => [`\`${one.name}\` (${one.in}${one.required ? ', required' : ''})`, one.description])

const bodiesOf = ({ requestBody }: Operation): string[][] =>
  Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => [`body \`${type}\``, namesIn(schema)])

/** Answers that are no errors of the catalogue. */
const answersOf = ({ responses }: Operation): string[][] => {
  const errors = Object.entries(responses).filter(([, answer]) => answer.$ref !== undefined)
  const own = Object.entries(responses).filter(([, answer]) => answer.$ref === undefined)
  const rows = own.map(([status, { description, content = {} }]) => {
    const bodies = Object.entries(content).map(([type, { schema }]) =>
      [`\`${type}\``, namesIn(schema)].filter(Boolean).join(' '),
    )
    return [status, [description, ...bodies].join(' ')]
  })
  return [...rows, ['errors', errors.map(([status]) => status).join(', ')]]
}

/** Names of the components that a schema refers to, itself or in a union. */
function namesIn(schema: Named | undefined): string {
  const all = [schema, ...(schema?.anyOf ?? [])]
  return all.flatMap(one => (one?.$ref ? [`\`${one.$ref.split('/').at(-1)}\``] : [])).join(' or ')
}
