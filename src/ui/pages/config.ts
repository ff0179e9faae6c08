/** The configuration in effect, and the last reload; a refused one is marked in its file. */
import { stringify } from 'yaml'
import type { Status } from '../../admin/commands/status.ts'
import { errors } from '../../lib/error.ts'
import { redactText } from '../../secrets/redact.ts'
import { excerpt } from '../excerpt.ts'
import { time } from '../format.ts'
import { type Html, html, link } from '../html.ts'
import { type Content, facts, mark, run, type Visit } from '../layout.ts'

/** Parts of a configuration by name; the lists are divided by their entries. */
type Sections = Readonly<Record<string, unknown>>
const LISTS: Readonly<Record<string, string>> = { models: 'id', providers: 'provider', virtual_models: 'id' }
/** Text of one part; the shell shows the rest. */
const MAX_PART_CHARACTERS = 40_000
/** Entries of a list whose names are shown. */
const MAX_NAMES = 1000

/** Shows one part of the configuration: `gateway`, or `models:ID`. */
export async function config({ query, context, readConfig }: Visit): Promise<Content> {
  const { lastReload, configVersion, references } = await run<Status>(context, 'status')
  const parts = context.config() as Sections
  const part = query.get('part') ?? 'gateway'
  return {
    title: 'Configuration',
    body: html`${facts([
      ['In effect', configVersion],
      [
        'Last reload',
        html`${lastReload.ok ? mark('good', 'accepted') : mark('bad', 'refused')} ${time(lastReload.at)}`,
      ],
      ...references.map(reference => ['Secret of', reference] as const),
      ...(lastReload.warnings ?? []).map(warning => ['Warning', warning] as const),
    ])}
${lastReload.error !== undefined && (await refused(lastReload.error, readConfig))}
<p class="row"><a class="button quiet" href="/ui/confirm?action=reload">Reload</a></p>
<h2>In effect: ${part}</h2>
<p class="hint">Times are in milliseconds, sizes in bytes, secrets are *** or the references that name them.</p>
${text(partOf(parts, part))}
<h2>Parts</h2>
<ul>${Object.entries(parts).map(([name, value]) => html`<li>${entries(name, value)}</li>\n`)}</ul>`,
  }
}

function partOf(parts: Sections, part: string): unknown {
  const [, list = '', id = ''] = /^(\w+):(.+)$/.exec(part) ?? []
  const key = LISTS[list]
  const found = key === undefined ? parts[part] : items(parts[list]).find(one => one[key] === id)
  if (found !== undefined && (key !== undefined || Object.hasOwn(parts, part))) return found
  throw errors.notFound(`The configuration has no part "${part}".`)
}

const items = (value: unknown): readonly Record<string, unknown>[] =>
  Array.isArray(value) ? (value as Record<string, unknown>[]) : []

function text(value: unknown): Html {
  const yaml = stringify(value)
  return html`<pre tabindex="0"><code>${yaml.slice(0, MAX_PART_CHARACTERS)}</code></pre>
${yaml.length > MAX_PART_CHARACTERS && html`<p>The rest is shown by <code>gatewayctl config</code>.</p>`}`
}

/** A link to a part, or the links to the entries of a list. */
function entries(name: string, value: unknown): Html {
  const key = LISTS[name]
  if (key === undefined) return html`<a href="${link('/ui/config', { part: name })}">${name}</a>`
  const found = items(value)
  return html`<details><summary>${name} (${found.length})</summary>
${found.slice(0, MAX_NAMES).map(one => html`<a href="${link('/ui/config', { part: `${name}:${one[key]}` })}">${one[key] as string}</a>\n`)}</details>`
}

/** `error` begins with `file:line:column: `, if it is one of a file. */
async function refused(error: string, readConfig: Visit['readConfig']): Promise<Html> {
  const [, file, line] = /^([^\n:]{1,500}):(\d{1,7}):\d{1,7}: /.exec(error) ?? []
  const source = file === undefined ? undefined : await readConfig(file)
  return html`<p role="alert">${redactText(error)}</p>
${
  source !== undefined &&
  html`<h2>${file}, as it is now</h2>
<pre tabindex="0"><code>${excerpt(source, Number(line)).map(({ number, text, isMarked }) => {
    const shown = `${isMarked ? '>' : ' '} ${String(number).padStart(5)}  ${text}`
    return isMarked ? html`<mark>${shown}</mark>\n` : html`${shown}\n`
  })}</code></pre>`
}`
}
