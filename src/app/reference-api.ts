/** The page of all operations, from the document at `/openapi.json`. */

type Tree = { readonly [key: string]: Tree }
type Table = (names: readonly string[], rows: readonly (readonly string[])[]) => string

/** Operations by their groups; each has a table of its parameters, body and answers. */
export function apiPage(document: object, table: Table): string {
  const { paths, tags } = JSON.parse(JSON.stringify(document)) as Tree
  const all = Object.entries(paths!).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const parts = (tags as unknown as { name: string }[]).map(({ name }) => {
    const own = all.filter(({ operation }) => (operation.tags as unknown as string[])[0] === name)
    const operations = own.map(({ path, method, operation }) => {
      const { operationId, summary, description } = operation as Readonly<Record<string, unknown>>
      const rows = [...parametersOf(operation), ...bodiesOf(operation), ...answersOf(operation)]
      const about = [`${summary}. Name in clients: \`${operationId}\`.`, ...(description ? [String(description)] : [])]
      return `### ${method} ${path}\n\n${about.join(' ')}\n\n${table(['Part', 'What it is'], rows)}`
    })
    return `\n## ${name}\n\n${operations.join('\n')}`
  })
  return parts.join('')
}

const parametersOf = ({ parameters }: Tree): string[][] =>
  (parameters as unknown as Readonly<Record<string, string>>[]).map(one => [
    `\`${one.name}\` (${one.in}${one.required ? ', required' : ''})`,
    one.description!,
  ])

const bodiesOf = ({ requestBody }: Tree): string[][] =>
  Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => [`body \`${type}\``, namesIn(schema)])

/** Answers that are no errors of the catalogue. */
const answersOf = ({ responses }: Tree): string[][] => {
  const errors = Object.entries(responses!).filter(([, answer]) => answer.$ref !== undefined)
  const own = Object.entries(responses!).filter(([, answer]) => answer.$ref === undefined)
  const rows = own.map(([status, { description, content = {} }]) => {
    const bodies = Object.entries(content).map(([type, { schema }]) =>
      [`\`${type}\``, namesIn(schema)].filter(Boolean).join(' '),
    )
    return [status, [description as unknown as string, ...bodies].join(' ')]
  })
  return [...rows, ['errors', errors.map(([status]) => status).join(', ')]]
}

/** Names of the components that a schema refers to, itself or in a union. */
function namesIn(schema: Tree | undefined): string {
  const all = [schema, ...((schema?.anyOf as unknown as Tree[] | undefined) ?? [])]
  const names = all.flatMap(one => (one?.$ref ? [`\`${String(one.$ref).split('/').at(-1)}\``] : []))
  return names.join(' or ')
}
