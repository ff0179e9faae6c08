/** How many usage reports run at the same time, and whose. */
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import { errors } from '../../src/lib/error.ts'
import type { ToolContext, ToolResult } from '../../src/mcp/tool.ts'
import { reporting } from '../../src/mcp/tools/analytics.ts'
import { getUsage, getUsageBreakdown } from '../../src/mcp/tools/usage.ts'
import { principalOf } from '../core/principal.ts'

const result: ToolResult = { content: [] }

/** Reports that run until the test ends them, by organization. */
function subject() {
  const running: { readonly org: string; readonly end: () => void }[] = []
  const results: (ToolResult & { readonly org: string })[] = []
  const start = (org: string, signal = new Cancellation()) => {
    const context = {
      ex: { caller: { principal: principalOf({ orgId: org }), tenant: org }, signal },
    } as unknown as ToolContext
    const read = () => new Promise<ToolResult>(resolve => running.push({ org, end: () => resolve(result) }))
    void reporting(context, read).then(one => results.push({ ...one, org }))
  }
  const endAll = async () => {
    for (; running.length > 0; await turn()) running.shift()!.end()
  }
  return { running, results, start, endAll }
}

t.test('of many reports few run at the same time; the rest wait, and organizations take turns', async t => {
  const { running, results, start, endAll } = subject()
  for (let n = 0; n < 20; n++) start('busy')
  await turn()
  t.equal(running.length, 3, 'one is left for another organization')
  start('calm')
  await turn()
  t.equal(running.at(-1)!.org, 'calm')
  start('calm')
  running.shift()!.end()
  await turn()
  t.equal(running.length, 4)
  t.equal(running.at(-1)!.org, 'calm', 'before nineteen that came earlier')
  await endAll()
  t.equal(results.length, 22)
  t.strictSame(
    results.filter(({ isError }) => isError),
    [],
  )
})

t.test('a report is refused where too many wait, and waits no longer once its caller has left', async t => {
  const { running, results, start, endAll } = subject()
  const left = new Cancellation()
  for (let n = 0; n < 3; n++) start('busy')
  start('busy', left)
  for (let n = 0; n < 100; n++) start('busy')
  await turn()
  const [refused] = results
  t.match(refused, { isError: true, content: [{ text: /^Too many usage reports/ }] })
  const waiting = 101 - results.length
  t.ok(waiting <= 64, `${waiting} wait`)
  left.abort(errors.aborted())
  await turn()
  t.equal(101 - results.length, waiting - 1)
  start('busy', left)
  await turn()
  t.equal(results.filter(({ isError }) => isError).length, results.length)
  await endAll()
  t.equal(running.length, 0)
  t.equal(results.length, 105)
  t.equal(results.filter(({ isError }) => !isError).length, 3 + waiting - 1)
})

t.test('a report reads no further once its caller has left', async t => {
  const rows: [says: string, run: (context: ToolContext) => Promise<ToolResult>][] = [
    ['usage', context => getUsage.run({ granularity: 'day' }, context)],
    [
      'a breakdown',
      context => getUsageBreakdown.run({ group_by: 'model', sort_by: 'cost', limit: 10, offset: 0 }, context),
    ],
  ]
  for (const [says, run] of rows) {
    const signal = new Cancellation()
    const read: string[] = []
    const one = (name: string) => async () => {
      read.push(name)
      if (read.length === 2) signal.abort(errors.aborted())
      return []
    }
    const reports = { keys: one('keys'), series: one('series'), ranking: one('ranking'), updatedAt: one('updatedAt') }
    const failed: unknown[] = []
    const services = { now: Date.now, reports, log: { error: (fields: unknown) => failed.push(fields) } }
    const ex = { caller: { principal: principalOf({ kind: 'key' }) }, signal, id: 'r' }
    t.match(await run({ ex, services, catalog: {} } as unknown as ToolContext), { isError: true }, says)
    t.equal(read.length, 2, says)
    t.strictSame(failed, [], 'which is no failure')
  }
})
