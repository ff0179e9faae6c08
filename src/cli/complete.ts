/** `gatewayctl completion`: scripts for shells, and the words with which a command line can go on. */
import { Argument, type Command, type Option } from 'commander'
import { type Admin, connect } from './admin.ts'
import { schemaOf } from './commands.ts'
import type { Io } from './io.ts'
import type { Open } from './session.ts'

/** The scripts call `gatewayctl __complete WORD…`; the last word is the one to complete. */
export const COMPLETE = '__complete'
/** Limits the wait for names. */
const NAMES_MS = 1_000
const MAX_NAMES = 500

/** Word and description. */
type Candidate = readonly [word: string, about: string]

const SCRIPTS = {
  // A shell breaks words at ":" and "=", and replaces only what follows the last one.
  bash: `_gatewayctl() {
  local line words word
  read -ra words <<<"\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=("")
  word=\${words[\${#words[@]}-1]}
  word=\${word%"\${word##*[:=]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    line=\${line%%$'\\t'*}
    COMPREPLY+=("\${line#"$word"}")
  done < <("\${words[0]}" ${COMPLETE} "\${words[@]:1}" 2>/dev/null)
}
complete -o default -F _gatewayctl gatewayctl
`,
  zsh: `#compdef gatewayctl
_gatewayctl() {
  local line
  local -a found
  for line in "\${(@f)$(gatewayctl ${COMPLETE} "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line//:/\\\\:}/$'\\t'/:}")
  done
  if (( $#found )); then _describe gatewayctl found; else _files; fi
}
compdef _gatewayctl gatewayctl
`,
  fish: `function __gatewayctl_find
  set -l words (commandline -opc) (commandline -ct)
  set -g __gatewayctl_found (gatewayctl ${COMPLETE} $words[2..] 2>/dev/null)
  test (count $__gatewayctl_found) -gt 0
end
complete -c gatewayctl -n __gatewayctl_find -f -a '$__gatewayctl_found'
`,
} as const

/** Adds `completion`, which prints the script of a shell. */
export function addCompletion(program: Command, open: Open): void {
  program
    .command('completion')
    .description('print the script that completes commands: source <(gatewayctl completion bash)')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS, _, command: Command) => {
      open(command).print(SCRIPTS[shell], text => text)
    })
}

/** Prints a line for each word that can stand in place of the last one: the word, a tab, its description. */
export async function complete(program: Command, words: readonly string[], io: Io): Promise<void> {
  const typed = words.at(-1) ?? ''
  const found = await candidates(program, words.slice(0, -1), typed, io)
  // A shell would read anything else in a name.
  const safe = found.filter(([word]) => word.startsWith(typed) && /^[\w.:@/+=-]+$/.test(word))
  io.out(safe.map(([word, about]) => `${word}\t${about.replace(/\s+/g, ' ')}\n`).join(''))
}

async function candidates(
  program: Command,
  before: readonly string[],
  typed: string,
  io: Io,
): Promise<readonly Candidate[]> {
  const given: Record<string, string> = {}
  let command = program
  let places = 0
  let awaiting: Option | undefined
  for (const word of before) {
    if (awaiting) {
      given[awaiting.attributeName()] = word
      awaiting = undefined
    } else if (word.startsWith('-')) {
      const option = optionsOf(command).find(one => one.long === word.split('=', 1)[0])
      if (option && takesValue(option) && !word.includes('=')) awaiting = option
    } else {
      const sub = command.commands.find(one => one.name() === word || one.aliases().includes(word))
      if (sub) command = sub
      else places++
    }
  }
  const names = (kind: string) => namesOf(kind, command, () => connect(given, io, NAMES_MS))
  const [flag, long] = /^(--[\w-]+)=/.exec(typed) ?? []
  const option = awaiting ?? optionsOf(command).find(one => one.long === long)
  if (option) {
    const values = option.argChoices?.map(one => [one, ''] as const) ?? (await names(option.attributeName()))
    return flag ? values.map(([word, about]) => [`${flag}${word}`, about] as const) : values
  }
  if (typed.startsWith('-')) {
    return optionsOf(command).flatMap(one => (one.long && !one.hidden ? [[one.long, one.description] as const] : []))
  }
  if (command.commands.length > 0) return command.commands.map(one => [one.name(), one.description()] as const)
  const place = command.registeredArguments[places]
  return place?.argChoices?.map(one => [one, ''] as const) ?? (place ? names(place.name()) : [])
}

const takesValue = ({ required, optional }: Option): boolean => required || optional
const optionsOf = (command: Command): readonly Option[] => [
  ...command.options,
  ...(command.parent ? optionsOf(command.parent) : []),
]

interface Listed {
  readonly id: string
  readonly name?: string
}
const byName = ({ id, name = id }: Listed): Candidate => (/^[\w.@-]+$/.test(name) ? [name, id] : [id, name])
const byId = ({ id, name = '' }: Listed): Candidate => [id, name]

/** Lists that name the values of options and arguments, by their names. */
const LISTS: Readonly<Record<string, readonly [command: string, show: (one: Listed) => Candidate]>> = {
  org: ['orgs.list', byName],
  project: ['projects.list', byName],
  key: ['keys.list', byId],
  model: ['models.list', byId],
  provider: ['providers.list', byId],
}

const takesLimit = (called: string): boolean => 'limit' in schemaOf(called).properties

/** Empty when the gateway does not answer: the shell then completes files. */
async function namesOf(kind: string, command: Command, admin: () => Admin): Promise<readonly Candidate[]> {
  const list = LISTS[kind === 'id' && command.parent?.name() === 'keys' ? 'key' : kind === 'query' ? 'model' : kind]
  if (!list) return []
  const [name, show] = list
  try {
    const args = takesLimit(name) ? { limit: MAX_NAMES } : {}
    return (await admin().command<Listed[]>(name, args)).slice(0, MAX_NAMES).map(show)
  } catch {
    return []
  }
}
