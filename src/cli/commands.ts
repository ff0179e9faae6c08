/** Adds the commands of the admin listener: their schemas say which options there are and what they take. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { commands } from '../admin/commands/index.ts'
import type { JsonSchema } from '../core/schema.ts'
import type { Admin } from './admin.ts'
import { type Arguments, inputs } from './inputs.ts'
import type { Open, Session } from './session.ts'

/** Descriptions of the words that group commands. */
const GROUPS: Readonly<Record<string, string>> = {
  orgs: 'organizations',
  projects: 'projects of organizations',
  members: 'members of organizations',
  keys: 'API keys',
  oauth: 'programs that act for the holder of a key',
  'oauth.clients': 'clients that registered, and those that the operator made',
  'oauth.grants': 'what clients were granted',
  credits: 'payments of organizations',
  plans: 'coding plans',
  providers: 'model providers',
  models: 'models',
  'models.custom': 'custom providers and models of an organization',
  'provider-keys': "organizations' own keys for providers",
  iam: 'access rules of organizations, members and keys',
  compliance: 'requirements of organizations for providers',
  route: 'routing of requests',
  videos: 'videos',
  nodes: 'processes that share the database',
  jobs: 'asynchronous jobs',
  requests: 'the log of requests',
}

/** Names in the shell that differ from those of the admin listener. */
const NAMES: Readonly<Record<string, string>> = {
  'members.add': 'members.create',
  'provider-keys.add': 'provider-keys.create',
  'iam.add': 'iam.create',
  'models.custom.add': 'models.custom.create',
}
/** Second names of commands. */
const ALSO: Readonly<Record<string, string>> = { 'videos.redeliver': 'jobs.retry-callback' }

/** Adds the commands whose names begin with `family`. */
export function addFamily(program: Command, open: Open, family: string): void {
  for (const called of Object.keys(commands)) {
    if (isOf(called, family)) addCommand(program, open, called, NAMES[called] ?? called)
  }
  for (const [name, called] of Object.entries(ALSO)) if (isOf(name, family)) addCommand(program, open, called, name)
}

const isOf = (name: string, family: string): boolean => name === family || name.startsWith(`${family}.`)

/** The command of that path; creates the groups on the way. */
function groupOf(program: Command, words: readonly string[]): Command {
  return words.reduce((parent, word, depth) => {
    const found = parent.commands.find(one => one.name() === word)
    return found ?? parent.command(word).description(GROUPS[words.slice(0, depth + 1).join('.')]!)
  }, program)
}

function addCommand(program: Command, open: Open, called: string, name: string): void {
  const { shell } = commands[called]!
  if (!shell) return
  const words = name.split('.')
  const own = words.pop()!
  const command = groupOf(program, words).command(own).description(shell.about)
  if (own === 'create') command.alias('add')
  const read = addArguments(command, called)
  const input = inputs[called]
  input?.add?.(command)
  command.action(async () => {
    const session = open(command)
    const given = read()
    const result = await fetchAll(session, called, (await input?.read?.(given, session, command)) ?? given)
    session.print(result as never, shell.show)
    warnUnknown(result, session)
  })
}

type ArgumentsSchema = {
  readonly properties: Readonly<Record<string, JsonSchema>>
  readonly required: readonly string[]
}
/** The schema of the arguments of a command of the admin listener. */
export const schemaOf = (called: string) => commands[called]!.args.json as ArgumentsSchema

/** Adds the arguments of `called` that have a text for the shell; returns a function that reads those given. */
export function addArguments(command: Command, called: string): () => Arguments {
  const { properties, required } = schemaOf(called)
  const readers: [argument: string, read: () => unknown][] = []
  for (const [argument, schema] of Object.entries(properties)) {
    if (typeof schema.shell !== 'string') continue
    const end = schema.shell.indexOf(': ')
    const [flags, about] = [schema.shell.slice(0, end), schema.shell.slice(end + 2)]
    if (flags.startsWith('--')) {
      const option = optionOf(flags, about, schema)
      command.addOption(option.makeOptionMandatory(required.includes(argument)))
      readers.push([argument, () => toArgument(command.getOptionValue(option.attributeName()), schema)])
    } else {
      const place = command.registeredArguments.length
      command.argument(flags, about)
      readers.push([argument, () => command.processedArgs[place]])
    }
  }
  return () => Object.fromEntries(readers.map(([argument, read]) => [argument, read()]))
}

function optionOf(flags: string, about: string, { type, enum: choices, anyOf, minimum = 1 }: JsonSchema): Option {
  const option = new Option(flags, about)
  if (Array.isArray(choices)) return option.choices(choices)
  if (type === 'boolean' && flags.endsWith('<on|off>')) return option.choices(['on', 'off'])
  if (type === 'array') return option.argParser(listOf)
  if (type === 'integer') return option.argParser(text => whole(text, minimum === 0 ? 0 : 1))
  const [names, form] = (anyOf ?? []) as readonly JsonSchema[]
  if (Array.isArray(names?.enum) && form?.pattern) return choicesAnd(option, names.enum, String(form.description))
  const takesList = (anyOf as readonly JsonSchema[] | undefined)?.some(form => form.type === 'array')
  return takesList ? option.argParser(text => (text === 'all' ? text : listOf(text))) : option
}

/** Takes some names, and texts of a form such as `tag:KEY`, which the gateway checks. */
function choicesAnd(option: Option, names: readonly string[], form: string): Option {
  const { parseArg } = option.choices([...names, form])
  const beginning = form.slice(0, form.indexOf(':') + 1)
  return option.argParser((text: string, before: unknown) =>
    beginning && text.startsWith(beginning) ? text : parseArg!(text, before),
  )
}

const toArgument = (given: unknown, { type }: JsonSchema): unknown =>
  type === 'boolean' && typeof given === 'string' ? given === 'on' : given

/** `a,b` → `['a', 'b']`; an empty text is an empty list. */
const listOf = (text: string): string[] =>
  text
    .split(',')
    .map(entry => entry.trim())
    .filter(Boolean)

/** Reads a whole number. Throws an InvalidArgumentError. */
export function whole(text: string, minimum: 0 | 1): number {
  if (/^\d{1,9}$/.test(text) && Number(text) >= minimum) return Number(text)
  throw new InvalidArgumentError(`"${text}" is not a whole number${minimum > 0 ? ' above zero' : ''}`)
}

const RECORDS_PER_PART = 500

interface Grouped {
  readonly groups?: readonly unknown[]
}

/** The whole result: joins lists that the admin listener answers in parts, by id or by offset. */
async function fetchAll({ admin }: Session, called: string, args: Arguments): Promise<unknown> {
  const { after, offset } = schemaOf(called).properties
  if (after) return listAll(admin, called, args)
  if (!offset) return admin.command(called, args)
  let whole: Grouped | undefined
  const list = await joinParts(async found => {
    const part = await admin.command<readonly unknown[] | Grouped>(called, {
      ...args,
      ...{ offset: found.length, limit: RECORDS_PER_PART },
    })
    if (isList(part)) return part
    whole ??= part
    return part.groups ?? []
  })
  return whole ? { ...whole, ...(whole.groups && { groups: list }) } : list
}

const isList = (part: readonly unknown[] | Grouped): part is readonly unknown[] => Array.isArray(part)

/** All records of a list that is read by id. */
export const listAll = <T>(admin: Admin, called: string, args: Arguments = {}): Promise<T[]> =>
  joinParts<T>(found => {
    const last = found.at(-1) as { readonly id?: string; readonly clientId?: string } | undefined
    return admin.command(called, { ...args, after: last?.id ?? last?.clientId, limit: RECORDS_PER_PART })
  })

/** All records of a list; `ask` resolves with the part after those found. */
async function joinParts<T>(ask: (found: readonly T[]) => Promise<readonly T[]>, found: T[] = []): Promise<T[]> {
  const part = await ask(found)
  found.push(...part)
  return part.length < RECORDS_PER_PART ? found : joinParts(ask, found)
}

/** Warns about accepted names that do not exist: they may be created later, or be misspelt. */
function warnUnknown(result: unknown, { io, json }: Session): void {
  const unknown = (result as { readonly unknown?: readonly string[] } | null)?.unknown
  if (unknown?.length && !json) io.err(`warning: there is no ${unknown.join(', ')} yet\n`)
}
