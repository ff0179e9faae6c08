/** `gatewayctl usage`. */
import { type Command, Option } from 'commander'
import { type UsageTotals, usageGroups } from '../core/ports.ts'
import { everyPart } from './pages.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

type Amount = 'cost' | 'creditsCost' | 'byokCost' | 'storageCost'
type Totals = Omit<UsageTotals, Amount> & Readonly<Record<Amount, string>>
interface Usage {
  readonly from: string
  readonly to: string
  readonly totals: Totals
  readonly groupBy?: string
  readonly groups?: readonly (Totals & { readonly id: string; readonly name?: string })[]
}

function showUsage({ from, to, totals, groupBy, groups }: Usage): string {
  const summary = facts([
    ['days', `${from} to ${to} (UTC)`],
    ['requests', `${totals.requests} (${totals.errors} failed, ${totals.cached} from cache)`],
    ['input tokens', `${totals.inputTokens} (${totals.cachedTokens} cached)`],
    ['output tokens', `${totals.outputTokens} (${totals.reasoningTokens} reasoning)`],
    ['cost USD', `${totals.cost} (${totals.creditsCost} of credits, ${totals.byokCost} through own provider keys)`],
    ['storage USD', totals.storageCost],
  ])
  if (!groups) return summary
  const isNamed = groups.some(({ name }) => name !== undefined)
  const rows = groups.map(group => [
    group.id,
    ...(isNamed ? [group.name ?? ''] : []),
    group.requests,
    group.errors,
    group.inputTokens,
    group.outputTokens,
    group.cost,
  ])
  return `${summary}\n${table([groupBy ?? '', ...(isNamed ? ['name'] : []), 'requests', 'failed', 'input', 'output', 'cost USD'], rows)}`
}

/** Adds `usage` and `usage check`. */
export function addUsage(program: Command, open: Open): void {
  const usage = program
    .command('usage')
    .description('show requests, tokens and cost (default: the last 30 days)')
    .option('--org <org>', 'only this organization')
    .option('--project <project>', 'only this project')
    .option('--key <id>', 'only this key')
    .option('--from <date>', 'first day, YYYY-MM-DD (UTC)')
    .option('--to <date>', 'last day, YYYY-MM-DD (UTC)')
    .addOption(new Option('--group-by <what>', 'group by').choices(usageGroups))
    .action(async ({ org: organization, project, key, from, to, groupBy }, command) => {
      const { admin, print } = open(command)
      const args = { organization, project, key, from, to, groupBy }
      let first: Usage | undefined
      const groups = await everyPart(async part => {
        const answer = await admin.command<Usage>('usage', { ...args, ...part })
        first ??= answer
        return answer.groups ?? []
      })
      print({ ...first!, ...(first!.groups && { groups }) }, showUsage)
    })

  usage
    .command('check')
    .description('compare request rows, ledger and totals')
    .action(async (_, command) => {
      const { admin, print } = open(command)
      print(await admin.command<{ differences: string[] }>('usage.check'), ({ differences }) =>
        differences.length === 0 ? 'no differences\n' : `${differences.join('\n')}\n`,
      )
    })
}
