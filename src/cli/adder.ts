/** Adds commands that call the admin listener. Its schemas say which options are mandatory and what they take. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { commands } from '../admin/commands/index.ts'
import type { JsonSchema } from '../core/schema.ts'
import type { Open, Session } from './session.ts'

/** Texts by argument: `--flag <value>: description` for an option, `<name>: description` for a positional argument. */
type Texts = Readonly<Record<string, string>>

interface Adaptation<T> {
  /** Name of the admin command; by default `<path>.<name>`, or `<path>.add` for `create`. */
  readonly calls?: string
  /** Replaces the call with the arguments as given. */
  call?(session: Session, args: Readonly<Record<string, unknown>>, command: Command): Promise<T>
}

/** Adds one command; `show` formats its result for people. */
type Add = <T>(
  name: string,
  description: string,
  texts: Texts,
  show: (value: T) => string,
  adaptation?: Adaptation<T>,
) => Command

type ArgumentsSchema = {
  readonly properties: Readonly<Record<string, JsonSchema>>
  readonly required: readonly string[]
}

/** Adds commands to `parent`; those of the admin listener begin with `path`. */
export const adder =
  (parent: Command, path: string, open: Open): Add =>
  (name, description, texts, show, adaptation = {}) => {
    const own = path ? `${path}.${name}` : name
    const called = adaptation.calls ?? (name === 'create' && !(own in commands) ? `${path}.add` : own)
    const { properties, required } = commands[called]!.args.json as ArgumentsSchema
    const command = parent.command(name).description(description)
    if (name === 'create') command.alias('add')
    const readers: [argument: string, read: () => unknown][] = []
    for (const [argument, text] of Object.entries(texts)) {
      if (!properties[argument]) throw new Error(`${called} takes no ${argument}`)
      const end = text.indexOf(': ')
      const [flags, about] = [text.slice(0, end), text.slice(end + 2)]
      if (flags.startsWith('--')) {
        const option = optionOf(flags, about, properties[argument]!)
        command.addOption(option.makeOptionMandatory(required.includes(argument)))
        readers.push([argument, () => command.getOptionValue(option.attributeName())])
      } else {
        const place = command.registeredArguments.length
        command.argument(flags, about)
        readers.push([argument, () => command.processedArgs[place]])
      }
    }
    return command.action(async () => {
      const session = open(command)
      const args = Object.fromEntries(
        readers.map(([argument, read]) => [argument, toArgument(read(), properties[argument]!)]),
      )
      const result = await (adaptation.call?.(session, args, command) ?? fetchAll(session, called, properties, args))
      session.print(result as never, show)
      warnUnknown(result, session)
    })
  }

function optionOf(flags: string, about: string, { type, enum: choices, anyOf }: JsonSchema): Option {
  const option = new Option(flags, about)
  if (Array.isArray(choices)) return option.choices(choices)
  if (type === 'boolean' && flags.endsWith('<on|off>')) return option.choices(['on', 'off'])
  if (type === 'array') return option.argParser(listOf)
  if (type === 'integer') return option.argParser(whole)
  return anyOf ? option.argParser(text => (text === 'all' ? text : listOf(text))) : option
}

const toArgument = (given: unknown, { type }: JsonSchema): unknown =>
  type === 'boolean' && typeof given === 'string' ? given === 'on' : given

/** `a,b` → `['a', 'b']`; an empty text is an empty list. */
const listOf = (text: string): string[] =>
  text
    .split(',')
    .map(entry => entry.trim())
    .filter(Boolean)

function whole(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError(`"${text}" is not a whole number above zero`)
}

/** Records per part of a list. */
export const PART = 500

interface Named {
  readonly id?: string
  readonly clientId?: string
}

/** The whole result: joins lists that the admin listener answers in parts, by id or by offset. */
async function fetchAll(
  { admin }: Session,
  called: string,
  { after, offset }: ArgumentsSchema['properties'],
  args: object,
): Promise<unknown> {
  if (after) {
    const idOf = (last?: Named) => last?.id ?? last?.clientId
    return joinParts<Named>(found => admin.command(called, { ...args, after: idOf(found.at(-1)), limit: PART }))
  }
  if (!offset) return admin.command(called, args)
  return joinParts(found => admin.command(called, { ...args, offset: found.length, limit: PART }))
}

/** All records of a list; `ask` resolves with the part after those found. */
export async function joinParts<T>(ask: (found: readonly T[]) => Promise<readonly T[]>, found: T[] = []): Promise<T[]> {
  const part = await ask(found)
  found.push(...part)
  return part.length < PART ? found : joinParts(ask, found)
}

/** Warns about accepted names that do not exist: they may be created later, or be misspelt. */
function warnUnknown(result: unknown, { io, json }: Session): void {
  const unknown = (result as { readonly unknown?: readonly string[] } | null)?.unknown
  if (unknown?.length && !json) io.err(`warning: there is no ${unknown.join(', ')} yet\n`)
}
