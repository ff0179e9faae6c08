/** The commands of the shell, as the admin listener's schemas and the hand-made ones give them. */
import type { Command } from 'commander'
import t from 'tap'
import { commands } from '../../src/admin/commands/index.ts'
import { buildProgram } from '../../src/cli/program.ts'

const program = buildProgram({ env: {}, cwd: '', out: () => {}, err: () => {} })

function paths(command: Command, path = ''): string[] {
  const own = command.commands.flatMap(sub => paths(sub, `${path} ${sub.name()}`.trim()))
  return path ? [path, ...own] : own
}

t.test('the shell has every command of the admin listener that people call', async t => {
  const shown = new Set(paths(program))
  const missing = Object.keys(commands).filter(name => {
    const words = name.replaceAll('.', ' ')
    return !shown.has(words) && !shown.has(words.replace(/add$/, 'create'))
  })
  t.strictSame(missing, ['keys.import', 'sessions.begin', 'sessions.end'])
})

t.test('every group and every command of the shell is described', async t => {
  const undescribed = (command: Command): string[] => [
    ...(command.description() ? [] : [command.name()]),
    ...command.commands.flatMap(undescribed),
  ]
  t.strictSame(undescribed(program), [])
})
