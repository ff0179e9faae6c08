/** Rates and places of organizations, by rule; and which app a request is attributed to. */

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { Exchange } from '../../src/core/exchange.ts'
import { parseMoney } from '../../src/core/money.ts'
import type { Principal, Services } from '../../src/core/ports.ts'
import type { Reply } from '../../src/core/reply.ts'
import { ratelimit } from '../../src/filters/ratelimit/index.ts'
import { sourceOf } from '../../src/filters/source.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { MemoryCounters } from '../../src/stores/memory/counters.ts'
import { byName, eventsOf, exchange, principal } from '../core/kit.ts'
import { runs } from '../helpers/runs.ts'

const DAY = 86_400_000
const NOW = 100 * DAY
type Options = Parameters<typeof ratelimit.create>[0]

function make(options: Partial<Options>, used = '0', clock: () => number = () => 0) {
  let lookups = 0
  const services = {
    counters: new MemoryCounters(clock),
    ledger: {
      balance: async () => {
        lookups++
        return { balance: 0n, held: 0n, used: parseMoney(used) }
      },
    },
    now: () => NOW,
  }
  const filter = ratelimit.create({ rpm: 10, rules: [], limits: [], ...options }, services as unknown as Services)
  const answer = async (): Promise<Reply> => ({ status: 200, headers: [], events: eventsOf() })
  const enter = (ex: Exchange) =>
    Promise.resolve()
      .then(() => filter.handle!(ex, answer))
      .then(
        reply => ({ status: reply.status, headers: byName(ex.answer.headers) }),
        (error: GatewayError) => ({ status: error.status, headers: error.headers, message: error.message }),
      )
  const limitOf = async (changes: Partial<Principal>) =>
    Number((await enter(exchange({ principal: { ...principal, ...changes } }))).headers['ratelimit-limit'])
  return { filter, enter, limitOf, lookups: () => lookups }
}

t.test('the first rule that fits says what an organization may', async t => {
  const { limitOf } = make({
    rules: [
      { organizations: ['acme-inc', 'org-7'], rpm: 500 },
      { plans: ['lite', 'pro', 'max'], rpm: 3 },
      { age: 90 * DAY, factor: 20 },
      { age: 7 * DAY, plans: ['none'], factor: 0.25 },
    ],
  })
  const plan = { plan: 'pro', since: 0, overflow: false } as const
  const rows: [says: string, changes: Partial<Principal>, rpm: number][] = [
    ['by name', { orgName: 'acme-inc' }, 500],
    ['by id', { orgId: 'org-7', plan }, 500],
    ['by plan', { plan, since: 0 }, 3],
    ['old', { since: NOW - 90 * DAY }, 200],
    ['not so old', { since: NOW - 90 * DAY + 1 }, 3],
    ['new', { since: NOW }, 10],
  ]
  for (const [says, changes, rpm] of rows) t.equal(await limitOf(changes), rpm, says)
})

t.test('what an organization has used is looked up behind its requests, now and then', async t => {
  const { limitOf, lookups } = make({ rules: [{ spent: '100.5', factor: 2 }] }, '100.5')
  t.equal(await limitOf({}), 10, 'nobody waits for it')
  t.equal(await limitOf({}), 20)
  t.equal(await limitOf({}), 20)
  t.equal(lookups(), 1)
  const short = make({ rules: [{ spent: '100.5', factor: 2 }] }, '100.499999999')
  await short.limitOf({})
  t.equal(await short.limitOf({}), 10)
})

t.test('an organization has so many places, over all endpoints, and gets them back', async t => {
  const { filter, enter } = make({ concurrency: 2, rules: [{ organizations: ['big'], concurrency: 5 }] })
  const running = [1, 2].map(() => exchange({ principal }))
  for (const ex of running) t.equal((await enter(ex)).status, 200)
  const third = exchange({ principal })
  const refused = await enter(third)
  t.match(refused, {
    status: 429,
    headers: { 'retry-after': '1', 'ratelimit-policy': '"concurrency";q=2;qu="concurrent-requests"' },
    message: 'Too many concurrent requests for this organization (limit: 2). Please retry after 1 seconds.',
  })
  t.notOk(refused.headers.ratelimit, 'no quota of requests was checked')
  filter.finish!(third, true)
  t.equal((await enter(exchange({ principal }))).status, 429, 'who had no place gives none back')
  t.equal((await enter(exchange({ principal: { ...principal, orgId: 'another' } }))).status, 200)
  t.equal((await enter(exchange({ principal: { ...principal, orgName: 'big' } }))).status, 200)
  filter.finish!(running[0]!, true)
  filter.finish!(running[0]!, true)
  filter.finish!(running[1]!, true)
  t.equal((await enter(exchange({ principal }))).status, 200)
  t.equal((await enter(exchange({ principal }))).status, 429, 'the big one still has its place, of the same ones')
})

t.test('a request beyond the rate gives its place back, too', async t => {
  const { filter, enter } = make({ rpm: 1, concurrency: 1 })
  const [first, second, third] = [1, 2, 3].map(() => exchange({ principal })) as [Exchange, Exchange, Exchange]
  t.equal((await enter(first)).status, 200)
  filter.finish!(first, true)
  t.match(await enter(second), { status: 429, headers: { 'ratelimit-remaining': '0' } })
  filter.finish!(second, true)
  t.match(await enter(third), { status: 429, message: /Rate limit exceeded/ })
})

t.test(
  'a client that waits as long as Retry-After says is let in, and never waits for longer than the window',
  async () => {
    const waits = fc.array(
      fc.oneof(
        fc.nat(90_000),
        fc.integer({ min: 59_000, max: 61_000 }),
        fc.nat(1_500_000).map(units => units / 1024),
      ),
      { minLength: 1, maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), waits, async (rpm, waits) => {
        let now = 0
        const { enter } = make({ rpm }, '0', () => now)
        for (const wait of waits) {
          now += wait
          let got = await enter(exchange({ principal }))
          while (got.status === 200) got = await enter(exchange({ principal }))
          const seconds = Number(got.headers['retry-after'])
          assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, `${seconds}`)
          assert.equal(got.headers.ratelimit, `"requests";r=0;t=${seconds}`)
          now += seconds * 1000
          assert.equal((await enter(exchange({ principal }))).status, 200, `refused after ${seconds} s, at ${now}`)
        }
      }),
      { numRuns: runs(200) },
    )
  },
)

t.test('an app is known by what it says, where it links from, or what it runs on', async t => {
  const rows: [headers: Record<string, string>, app: string | null][] = [
    [{ 'x-source': 'https://www.acme.example/app' }, 'acme.example/app'],
    [{ 'x-source': 'My-App', 'user-agent': 'Cline/3.2' }, 'My-App'],
    [{ 'x-source': 'Open-Code' }, 'opencode'],
    [{ 'x-source': 'roo-cline' }, 'roo-code'],
    [{ 'x-source': 'kilo' }, 'kilo-code'],
    [{ 'x-source': 'codeium' }, 'windsurf'],
    [{ 'x-source': 'copilot' }, 'github-copilot'],
    [{ 'x-source': 'hermes' }, 'hermes-agent'],
    [{ 'x-source': 'claude-code' }, 'claude.com/claude-code'],
    [{ referer: 'https://www.chat.example/c/1?secret=2', 'user-agent': 'Cline/3.2' }, 'chat.example'],
    [{ referer: 'no address' }, null],
    [{ 'user-agent': 'claude-cli/1.0.35 (external, cli)' }, 'claude.com/claude-code'],
    [{ 'user-agent': 'codex_cli_rs/0.20.0 (Linux)' }, 'codex'],
    [{ 'user-agent': 'opencode/0.5.1' }, 'opencode'],
    [{ 'user-agent': 'RooCode/3.25' }, 'roo-code'],
    [{ 'user-agent': 'Kilo-Code/4.1' }, 'kilo-code'],
    [{ 'user-agent': 'Cline/3.2' }, 'cline'],
    [{ 'user-agent': 'Cursor/1.4' }, 'cursor'],
    [{ 'user-agent': 'n8n' }, 'n8n'],
    [{ 'user-agent': 'OpenClaw/2026.1' }, 'openclaw'],
    [{ 'user-agent': 'aider/0.86' }, 'aider'],
    [{ 'user-agent': 'Zed/0.199' }, 'zed'],
    [{ 'user-agent': 'GitHubCopilotChat/0.30' }, 'github-copilot'],
    [{ 'user-agent': 'OpenAI/JS 6.49.0' }, 'openai-sdk'],
    [{ 'user-agent': 'AsyncOpenAI/Python 1.99' }, 'openai-sdk'],
    [{ 'user-agent': 'node', 'x-title': 'Roo Code' }, 'roo-code'],
    [{ 'x-openrouter-title': 'Cline' }, 'cline'],
    [{ 'user-agent': 'Mozilla/5.0 (to be continued)' }, null],
    [{ 'user-agent': 'curl/8.5' }, null],
    [{}, null],
  ]
  for (const [headers, app] of rows) t.equal(sourceOf(exchange({ headers })), app, JSON.stringify(headers))
})
