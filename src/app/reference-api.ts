/** The page of all operations, from the document at `/openapi.json`. */

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

/** Operations by their groups; each has a table of its parameters, body and answers. */
export function apiPage(document: object, table: Table): string {
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
