/** The demo provider: a simulated upstream within this process, so that a demo request takes the whole real path. */

import type { MessageSocket } from '../core/message-socket.ts'
import {
  type Operation,
  type SimulatedAnswer,
  SimulatedError,
  type SimulatedSession,
  type Simulation,
} from '../core/operation.ts'
import type { InProcessAnswer, InProcessProvider, InProcessRequest } from '../core/ports.ts'
import { isObject, jsonIn } from '../json/json.ts'
import { Router } from '../lib/router.ts'
import { SimulatedSocket } from './socket.ts'

const BASE = '/v1'
/** Simulations distinguish methods themselves. */
const ANY = 'ANY'
/** Larger bodies are refused: the demo is free, and reads all of them. */
const MAX_BODY_BYTES = 4 * 1024 * 1024

/** Answers with the simulations of the operations. */
export class DemoProvider implements InProcessProvider {
  readonly #simulations = new Router<Simulation>()
  readonly #sessions: ReadonlyMap<string, SimulatedSession>

  constructor(operations: Iterable<Operation>) {
    const all = [...operations]
    // Operations may share simulations.
    const byPath = new Map(all.flatMap(({ demo = {} }) => Object.entries(demo)))
    for (const [path, simulate] of byPath) this.#simulations.add(ANY, BASE + path, simulate)
    this.#sessions = new Map(all.flatMap(({ demoSession = {} }) => Object.entries(demoSession)))
  }

  answer({ method, path, contentType, body }: InProcessRequest): InProcessAnswer {
    const [place = ''] = path.split('?', 1)
    const match = this.#simulations.match(ANY, place)
    if (!match || 'allow' in match) return refusal(404, `the demo provider does not serve ${place}`)
    if (body.length > MAX_BODY_BYTES) {
      return refusal(400, `the demo provider takes bodies of at most ${MAX_BODY_BYTES} bytes, got ${body.length}`)
    }
    try {
      const json: unknown = contentType.startsWith('application/json') ? JSON.parse(body.toString('utf8')) : undefined
      return answerOf(match.value({ json, body, contentType, method, params: match.params }))
    } catch (thrown) {
      if (thrown instanceof SimulatedError) return refusal(400, thrown.message, thrown)
      return refusal(400, 'the demo provider cannot read the request')
    }
  }

  connect(path: string): MessageSocket | undefined {
    const [place = '', query = ''] = path.split('?', 2)
    const session = this.#sessions.get(place.slice(BASE.length))
    return session && new SimulatedSocket(send => withObjects(session(send, query)))
  }
}

/** Takes messages that are JSON objects, and ignores others. */
const withObjects =
  (take: (event: Record<string, unknown>) => void) =>
  (text: string): void => {
    const event = jsonIn(text)
    if (isObject(event)) take(event)
  }

const json = (status: number, value: object): InProcessAnswer => ({
  status,
  contentType: 'application/json',
  chunks: [Buffer.from(JSON.stringify(value))],
})

type ErrorFields = Record<'param' | 'code', string | null>

const refusal = (status: number, message: string, { param = null, code = null }: Partial<ErrorFields> = {}) =>
  json(status, { error: { message, type: 'invalid_request_error', param, code } })

function answerOf(answer: SimulatedAnswer): InProcessAnswer {
  if ('json' in answer) return json(200, answer.json)
  return { status: 200, contentType: answer.contentType, chunks: bytesOf(answer.chunks) }
}

function* bytesOf(chunks: Iterable<string | Buffer>): Generator<Buffer> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}
