/**
 * Every client wire × every chat wire × every case: a client cannot tell which wire answered, but for what stands in
 * `matrix/support.ts`.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { checkInvariants } from '../helpers/invariants.ts'
import { type Cell, cases } from './matrix/cases.ts'
import { type ClientWire, clients } from './matrix/clients.ts'
import { everyWire } from './matrix/gateway.ts'
import { limitOf, support, supportTable } from './matrix/support.ts'
import { type ChatWire, wires } from './matrix/wires.ts'

const { upstream, gateway } = await everyWire()

const cellOf = (client: ClientWire, wire: ChatWire, mode: Cell['mode']): Cell => {
  let from = 0
  return {
    wire,
    mode,
    async script(...steps) {
      from = (await upstream.record(wire.id)).length
      await upstream.script(wire.id, steps)
    },
    ask: (body, as = mode) => client.ask(gateway, as, { model: wire.id, ...body }),
    record: async () => (await upstream.record(wire.id)).slice(from),
  }
}

for (const client of clients) {
  for (const { name, modes, play, expected } of cases) {
    for (const mode of modes) {
      t.test(`${client.name}, ${name}, ${mode}: the client sees the same on every wire`, async t => {
        await upstream.reset()
        const sights = await Promise.all(
          wires.map(wire => play(cellOf(client, wire, mode)).catch((error: Error) => ({ error: error.stack }))),
        )
        wires.forEach(({ wire }, i) => {
          const limit = limitOf(wire, name)
          const seen = client.sees({ ...expected, ...limit?.instead })
          t.same(sights[i], seen, limit ? `${wire}, which differs: ${limit.why}` : wire)
        })
        const refused = (await upstream.record()).filter(entry => entry.refused)
        t.same(
          refused.map(({ prefix, refused }) => [prefix, refused]),
          [],
          'no provider refuses what it is sent',
        )
      })
    }
  }
}

t.test('the support table names cases and wires that exist, and docs/wires.md shows it', async t => {
  for (const limit of support) {
    t.ok(
      cases.some(({ name }) => name === limit.case),
      limit.case,
    )
    for (const name of limit.wires)
      t.ok(
        wires.some(({ wire }) => wire === name),
        name,
      )
  }
  const page = readFileSync(new URL('../../docs/wires.md', import.meta.url), 'utf8')
  const table = page.slice(page.indexOf('| Case')).trim()
  t.equal(table, supportTable(), 'docs/wires.md is this table')
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
