/** Answers of every wire in which something is not as it should be: no decoder breaks over them. */

import { randomInt } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as cohere } from '../../plugins/cohere.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { plugin as responses } from '../../plugins/openai-responses.ts'
import type { Event } from '../../src/core/event.ts'
import type { Translator } from '../../src/core/translator.ts'
import type { Json } from '../../src/json/json.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import { Fold } from '../../src/wire/fold.ts'
import { figure } from '../helpers/figure.ts'
import { random } from '../helpers/random.ts'
import { target } from '../plugins/wire-kit.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 100_000)
const SEED = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31))
/** Of one answer, however it is. */
const LIMIT_MS = 1000

interface Piece {
  name?: string
  data: string
}
interface Recorded {
  mode: 'stream' | 'unary'
  pieces: Piece[]
}

const golden = fileURLToPath(new URL('../golden', import.meta.url))
const wires = [anthropic, bedrock, cohere, gemini, mistral, openai, responses].flatMap(
  ({ wires }) => wires.filter(({ op }) => op === 'chat') as unknown as Translator<'chat'>[],
)
/** The folder of a wire's recorded answers; variants of a wire share one. */
const folderOf = ({ wire }: Translator<'chat'>) => {
  const [vendor = '', format = ''] = wire.split('.')
  return join(golden, existsSync(join(golden, `${vendor}-${format}`)) ? `${vendor}-${format}` : vendor)
}

/** Frames stand in tables as JSON, as text, or with their name before them. */
function pieceOf(frame: unknown): Piece {
  if (Array.isArray(frame) && typeof frame[0] === 'string')
    return { name: frame[0], data: JSON.stringify(frame[1] ?? {}) }
  return { data: typeof frame === 'string' ? frame : JSON.stringify(frame) }
}

function recorded(folder: string): Recorded[] {
  const files = readdirSync(folder)
  const text = (name: string) => readFileSync(join(folder, name))
  const streams = files
    .filter(name => name.endsWith('.sse'))
    .map(name => {
      const framing = new SseFraming()
      const frames = [...framing.push(text(name)), ...framing.end()]
      return { mode: 'stream' as const, pieces: frames.map(({ name, data }) => (name ? { name, data } : { data })) }
    })
  const rows = files
    .filter(name => name.endsWith('.table.json'))
    .flatMap(name => JSON.parse(String(text(name))) as Json[])
  const tables = rows.flatMap(({ mode, frames, payloads, payload }) => {
    const given = payload === undefined ? (frames ?? payloads) : [payload]
    if (!Array.isArray(given)) return []
    const whole = payload !== undefined || mode === 'unary'
    return [{ mode: whole ? ('unary' as const) : ('stream' as const), pieces: given.map(pieceOf) }]
  })
  return [...streams, ...tables]
}

/** What no provider means to send. */
const odd: unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, Number.MAX_SAFE_INTEGER, '', '0', 'NaN', '\u0000', '\ud800', '[DONE]'],
  ...[[], [[]], [null], {}, { toString: null }, { type: null }, { __proto__: null, constructor: {} }, 'x'.repeat(5000)],
]

class Mutator {
  readonly #below: (n: number) => number

  constructor(seed: number) {
    const next = random(seed)
    this.#below = limit => Math.floor(next() * limit)
  }

  of<T>(list: readonly T[]): T {
    return list[this.#below(list.length)]!
  }

  /** The answer with one to three things changed. */
  change({ pieces }: Recorded, corpus: readonly Recorded[]): Piece[] {
    const changed = pieces.map(piece => ({ ...piece }))
    for (let times = 1 + this.#below(3); times > 0; times--) {
      const at = this.#below(changed.length || 1)
      const piece = changed[at]
      switch (piece ? this.#below(6) : 0) {
        case 0:
          changed.splice(at, 0, { ...(this.of(this.of(corpus).pieces) ?? { data: '' }) })
          break
        case 1:
          changed.splice(at, 1)
          break
        case 2:
          changed.splice(at, 0, ...changed.slice(at, at + 1 + this.#below(3)))
          break
        case 3:
          piece!.data = this.#bytes(piece!.data)
          break
        default:
          piece!.data = this.#json(piece!.data)
      }
    }
    return changed
  }

  /** A text with some characters that are missing, doubled or others. */
  #bytes(text: string): string {
    const at = this.#below(text.length + 1)
    const end = Math.min(text.length, at + this.#below(12))
    const middle = this.of(['', text.slice(at, end).repeat(2), String.fromCharCode(this.#below(256)), '{', '"', '\\'])
    return text.slice(0, at) + middle + text.slice(end)
  }

  /** JSON of which one value is odd, missing, or another one of its own. */
  #json(text: string): string {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return this.#bytes(text)
    }
    const places: [holder: Json, key: string][] = []
    const look = (holder: unknown) => {
      if (typeof holder !== 'object' || holder === null) return
      for (const key of Object.keys(holder)) {
        places.push([holder as Json, key])
        look((holder as Json)[key])
      }
    }
    look(value)
    if (places.length === 0) return JSON.stringify(this.of(odd))
    const [holder, key] = this.of(places)
    const kind = this.#below(4)
    if (kind === 0) delete holder[key]
    else if (kind === 1) {
      const [other, name] = this.of(places)
      holder[key] = structuredClone(other[name])
    } else holder[key] = this.of(odd)
    return JSON.stringify(value)
  }
}

/** Why the events cannot be used; undefined when they can. */
function fault(events: readonly Event[]): string | undefined {
  for (const event of events) {
    if ('text' in event && typeof event.text !== 'string') return `text ${JSON.stringify(event)}`
    if ('choice' in event && !(Number.isInteger(event.choice) && event.choice >= 0)) return `choice ${event.choice}`
    if (event.type === 'tool') {
      if (!(Number.isInteger(event.index) && event.index >= 0)) return `index ${event.index}`
      for (const value of [event.id, event.name, event.args])
        if (value !== undefined && typeof value !== 'string') return `tool ${JSON.stringify(event)}`
    }
    if (event.type === 'usage')
      for (const count of Object.values(event.usage))
        if (typeof count === 'number' && !(Number.isFinite(count) && count >= 0))
          return `usage ${JSON.stringify(event)}`
    if (event.type === 'error' && event.error.status === 500) return `error ${event.error.cause}`
  }
  new Fold().add(events)
  JSON.stringify(events.filter(({ type }) => type !== 'error'))
  return undefined
}

for (const wire of wires) {
  t.test(`SF-07 ${wire.wire}: no answer breaks the decoder`, async t => {
    t.comment(`FUZZ_SEED=${SEED}`)
    const corpus = recorded(folderOf(wire))
    t.ok(corpus.length > 5, `${corpus.length} recorded answers`)
    const mutator = new Mutator(SEED)
    const place = target({ translator: wire as Translator })
    const wrong: unknown[] = []
    let slowest = 0
    let failed = 0
    for (let run = 0; run < RUNS && wrong.length < 5; run++) {
      const chosen = mutator.of(corpus)
      const pieces = mutator.change(chosen, corpus)
      const start = performance.now()
      let found: string | undefined
      try {
        const decoder = wire.decoder(chosen.mode, place)
        const events: Event[] = []
        for (const piece of pieces) {
          if (decoder.done) break
          events.push(...decoder.frame(piece))
        }
        events.push(...decoder.end())
        found = fault(events)
        if (events.some(({ type }) => type === 'error')) failed++
      } catch (error) {
        if (!(error instanceof GatewayError) || error.status === 500)
          found = String((error as Error).stack).slice(0, 400)
      }
      slowest = Math.max(slowest, performance.now() - start)
      if (found !== undefined)
        wrong.push({ found, run, mode: chosen.mode, pieces: JSON.stringify(pieces).slice(0, 2000) })
    }
    t.strictSame(wrong, [])
    t.ok(
      failed > RUNS / 100 && failed < RUNS,
      `${failed} of ${RUNS} end with an error, the others are read as they are`,
    )
    figure(t, { id: 'SF-07', what: `mutated answers, ${wire.wire}`, value: RUNS, unit: '' })
    figure(t, { id: 'SF-07', what: `slowest of them, ${wire.wire}`, value: slowest, unit: 'ms', atMost: LIMIT_MS })
  })
}
