/** Forms made from the schemas of commands, so that a page has every argument that the shell has. */
import type { Command } from '../admin/command.ts'
import type { JsonSchema } from '../core/schema.ts'
import { type Html, html } from './html.ts'

/** An argument that people fill in. */
interface Field {
  readonly name: string
  readonly hint: string
  readonly schema: JsonSchema
  readonly required: boolean
}

/** `--org <org>: only this organization` → `only this organization`. */
const hintOf = (shell: string): string => shell.slice(shell.indexOf(': ') + 2)

/** The arguments of a command that its schema describes for the shell. */
export function fieldsOf({ args }: Command): readonly Field[] {
  const { properties = {}, required = [] } = args.json as {
    properties?: Readonly<Record<string, JsonSchema>>
    required?: readonly string[]
  }
  return Object.entries(properties).flatMap(([name, schema]) =>
    typeof schema.shell === 'string'
      ? [{ name, hint: hintOf(schema.shell), schema, required: required.includes(name) }]
      : [],
  )
}

/** The values of a form as arguments; what was left empty is absent. A number that is none stays text and is refused. */
export function argumentsOf(fields: readonly Field[], query: URLSearchParams): Record<string, unknown> {
  const given: Record<string, unknown> = {}
  for (const { name, schema } of fields) {
    const text = query.get(name)?.trim()
    if (text) given[name] = argumentOf(text, schema)
  }
  return given
}

function argumentOf(text: string, { type }: JsonSchema): unknown {
  if (type === 'boolean') return true
  if (type === 'array') return text.split(',').map(part => part.trim())
  return (type === 'integer' || type === 'number') && Number.isFinite(Number(text)) ? Number(text) : text
}

const spaced = (name: string): string => name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)

/** Labelled inputs with the values of `query`. */
export const inputs = (fields: readonly Field[], query: URLSearchParams): Html =>
  html`<div class="fields">${fields.map(
    field => html`<div>
<label for="f-${field.name}">${capital(spaced(field.name))}</label>
${input(field, query.get(field.name) ?? '')}
<div class="hint" id="h-${field.name}">${field.hint}</div>
</div>
`,
  )}</div>`

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

function input({ name, schema, required }: Field, value: string): Html {
  const described = html`id="f-${name}" name="${name}" aria-describedby="h-${name}"${required && html` required`}`
  if (schema.type === 'boolean') {
    return html`<input type="checkbox" ${described} value="on"${value !== '' && html` checked`}>`
  }
  if (Array.isArray(schema.enum)) {
    const options = (schema.enum as readonly string[]).map(
      option => html`<option${option === value && html` selected`}>${option}</option>`,
    )
    return html`<select ${described}><option value=""></option>${options}</select>`
  }
  const numeric = schema.type === 'integer' && html` inputmode="numeric"`
  return html`<input type="text" ${described} value="${value}" autocomplete="off" spellcheck="false"${numeric}>`
}
