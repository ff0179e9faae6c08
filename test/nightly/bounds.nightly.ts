/**
 * One tenant sends a request at every upper bound of every endpoint: the longest text, the most values, names and levels,
 * the largest file. Another tenant's small requests wait for them at most 250 ms at the 99th percentile.
 */
import { fork } from 'node:child_process'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { endpoints } from '../../src/endpoints/index.ts'
import { MAX_NAMES, MAX_VALUES } from '../../src/json/shape.ts'
import { percentile } from '../bench/stats.mjs'
import { commandsOf } from '../helpers/commands.ts'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { OpenApi, type Operation, requestOf } from '../helpers/openapi.ts'
import { startUpstream } from '../helpers/upstream.ts'
import { heard } from '../policy/parent.ts'
import type { Probed, Probing } from './prober.ts'
import { watchTurns } from './turns.ts'

/** Operations and bounds whose name has this. */
const ONLY = new RegExp(process.env.BOUNDS_ONLY ?? '')
const TURN_MS = 100
const ADDED_MS = 250
const TRIES = 3
/** Below these of docs/limits.md, since the example has some too. */
const VALUES = MAX_VALUES - 5000
const NAMES = MAX_NAMES - 1000
const LEVELS = 100
const MARGIN = 4096
const HOLE = 'put the filling here'
/** Names of texts that a request needs as they are. */
const FIXED = /^(?:model|type|role|url|image_url|document_url|file_id|id|call_id|tool_call_id|name|voice|format)$/

type Json = Record<string, unknown>

const upstream = await startUpstream(t, { key: upstreamSecret })
/** The provider of the small requests. */
const quick = await startUpstream(t, { key: upstreamSecret })
const turns = await watchTurns(t)
const gateway = await startGateway(t, {
  env: turns.env,
  providers: {
    a: { base_url: upstream.url('a'), inline_media: true },
    quick: { base_url: quick.url('quick'), models: [{ ...testMapping, model: 'small' }] },
  },
  config: {
    endpoints: { chat: { ratelimit: { rpm: 1_000_000 } } },
    catalog: { extends: 'packaged', models: './models.d', providers: '../providers.d' },
  },
})
const command = commandsOf(gateway)
const api = new OpenApi(await (await fetch(`${gateway.url}/openapi.json`)).json())

async function keyOf(name: string): Promise<string> {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name, account: 'open' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name })
  return (await command<{ key: string }>('keys.create', { project, name, rpm: 1_000_000 })).key
}

/** Places of the longest text and of the longest list of a body. */
function placesIn(value: unknown): { text?: Place; list?: Place } {
  const found: { text?: Place; list?: Place } = {}
  const visit = (parent: Json, name: string) => {
    const child = parent[name]
    if (typeof child === 'string') {
      const isLonger = !found.text || child.length > String(found.text.parent[found.text.name]).length
      if (isLonger && !FIXED.test(name) && !/^(?:data:|https?:)/.test(child)) found.text = { parent, name }
    } else if (child !== null && typeof child === 'object') {
      if (Array.isArray(child) && child.length > 0) found.list ??= { parent, name }
      for (const inner of Object.keys(child)) visit(child as Json, inner)
    }
  }
  for (const name of Object.keys(value as Json)) visit(value as Json, name)
  return found
}

interface Place {
  readonly parent: Json
  readonly name: string
}

/** A body as text, with `fill` in place of a value. Gets the bytes that are left below the bound. */
function filled(body: Json, place: Place, fill: (bytes: number) => string, limit: number): Buffer {
  const kept = place.parent[place.name]
  place.parent[place.name] = HOLE
  const [before, after] = JSON.stringify(body).split(`"${HOLE}"`) as [string, string]
  place.parent[place.name] = kept
  return Buffer.from(before + fill(limit - before.length - after.length - MARGIN) + after)
}

const count = (value: unknown): number =>
  value !== null && typeof value === 'object'
    ? 1 + Object.values(value).reduce<number>((sum, one) => sum + count(one), 0)
    : 1

/** Bodies of an example at each bound, each made when it is sent: together they have gigabytes. */
function* atBounds(body: Json, limit: number): Generator<[string, () => Buffer]> {
  const { text, list } = placesIn(body)
  if (text) {
    yield ['the longest text', () => filled(body, text, bytes => `"${'word '.repeat(Math.floor(bytes / 5))}"`, limit)]
    yield [
      'the longest text of two bytes',
      () => filled(body, text, bytes => `"${'é'.repeat(Math.floor(bytes / 2))}"`, limit),
    ]
    yield [
      'the longest text of escapes',
      () => filled(body, text, bytes => `"${'\\u2041'.repeat(Math.floor(bytes / 6))}"`, limit),
    ]
  }
  if (list) {
    const [first] = list.parent[list.name] as unknown[]
    const each = JSON.stringify(first)
    const most = Math.floor(VALUES / count(first))
    const fill = (bytes: number) =>
      `[${Array(Math.min(most, Math.floor(bytes / (each.length + 1))))
        .fill(each)
        .join()}]`
    yield ['the longest list', () => filled(body, list, fill, limit)]
  }
  const extra = { parent: { ...body }, name: 'metadata' }
  const more = (fill: string) => () => filled(extra.parent, extra, () => fill, limit)
  yield ['the most values', more(`[${Array(VALUES).fill('{}').join()}]`)]
  yield ['the most names', more(`{${Array.from({ length: NAMES }, (_, at) => `"n${at}":${at}`).join()}}`)]
  yield ['the most levels', more('['.repeat(LEVELS) + ']'.repeat(LEVELS))]
}

interface Row {
  readonly name: string
  readonly path: string
  readonly init: () => RequestInit
}

function* rowsOf(operation: Operation, limit: number): Generator<Row> {
  for (const example of operation.examples) {
    const { path, init } = requestOf(operation, example)
    const name = `${operation.id}, ${example.name}`
    if (example.type === 'application/json') {
      for (const [bound, body] of atBounds(structuredClone(example.value), limit)) {
        yield { name: `${name}: ${bound}`, path, init: () => ({ ...init, body: new Uint8Array(body()) }) }
      }
    } else if (init.body instanceof FormData) {
      const form = init.body
      const body = () => {
        for (const [field, value] of [...form]) {
          if (typeof value !== 'string') form.set(field, new Blob([largest(limit)]), value.name)
        }
        return form
      }
      yield { name: `${name}: the largest file`, path, init: () => ({ ...init, body: body() }) }
    }
  }
}

/** A WAV file in name: what it claims to be is read from its head. */
function largest(limit: number): Buffer<ArrayBuffer> {
  const file = Buffer.alloc(limit - 2 * MARGIN)
  file.write('RIFF\u0000\u0000\u0000\u0000WAVEfmt ', 'latin1')
  return file
}

const limitOf = ({ method, path }: Operation): number =>
  endpoints.find(row => row.method === method.toUpperCase() && row.path.replaceAll('{+', '{') === path)?.bodyLimit ?? 0

const authorization = `Bearer ${await keyOf('Attacker')}`
const probing: Probing = { url: gateway.url, key: await keyOf('Victim'), model: 'small' }
const prober = fork(join(process.env.COMPILED_TESTS!, 'nightly/prober.js'), [JSON.stringify(probing)])
t.teardown(() => prober.kill('SIGKILL'))
await heard(prober)
// The attack and its provider run when nothing else does, so that the probes measure the gateway.
for (const pid of [process.pid, upstream.pid]) setPriority(pid, 10)

/** Times of small requests of another tenant, in milliseconds, while `during` lasts. */
async function probed(during: () => Promise<unknown>): Promise<number[]> {
  prober.send('begin')
  await during()
  prober.send('end')
  const { times, failures } = (await heard(prober)) as Probed
  failed.push(...failures)
  return times
}

const failed: string[] = []
await probed(() => sleep(2000))
const alone = percentile(await probed(() => sleep(5000)), 0.99)
const all: number[] = []

for (const operation of api.operations) {
  const rows = [...rowsOf(operation, limitOf(operation))].filter(({ name }) => ONLY.test(name))
  if (rows.length === 0) continue
  t.test(`MT-02 ${operation.id}`, async t => {
    for (const { name, path, init } of rows) {
      const { headers, ...rest } = init()
      const waits: number[] = []
      let status = 0
      const times = await probed(async () => {
        for (let tries = 0; tries < TRIES; tries++) {
          await turns.longestMs()
          const answer = await fetch(gateway.url + path, { ...rest, headers: { ...headers, authorization } })
          await answer.arrayBuffer()
          status = answer.status
          waits.push(await turns.longestMs())
        }
      })
      all.push(...times)
      figure(t, { id: 'MT-02', what: `${name} (${status})`, value: Math.max(...waits), unit: 'ms', atMost: TURN_MS })
    }
  })
}

t.test('small requests of another tenant wait little', async t => {
  t.same(failed, [], 'each is answered')
  const value = percentile(all, 0.99) - alone
  figure(t, { id: 'MT-02', what: `added to ${all.length} small requests, p99`, value, unit: 'ms', atMost: ADDED_MS })
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway))
