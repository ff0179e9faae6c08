/** Text completions: what `echo` repeats of the prompts, and how often. */
import t from 'tap'
import { completions } from '../../src/codecs/completions.ts'
import type { Event } from '../../src/core/event.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { exchange, thrown } from '../core/kit.ts'

const decode = (body: object) => completions.decode({ model: 'm', echo: true, ...body }, exchange())
const choices = (count: number): Event[] =>
  Array.from({ length: count }, (_, choice): Event => ({ type: 'text', choice, text: '!' }))

function answered(body: object, events: readonly Event[]): string {
  const encoder = completions.encoder(exchange({ request: decode(body) }))
  return `${encoder.write(events) ?? ''}${encoder.end()}`
}

t.test('only the choices that a request names repeat its prompt', async t => {
  for (const stream of [false, true]) {
    const long = answered({ prompt: 'a'.repeat(1024 * 1024), stream }, choices(100))
    t.ok(long.length < 2 * 1024 * 1024, `${long.length} characters, stream: ${stream}`)
  }
  const rows: [says: string, body: object, texts: string[]][] = [
    ['one choice', { prompt: 'a' }, ['a!', '!', '!', '!', '!']],
    ['two choices', { prompt: 'a', n: 2 }, ['a!', 'a!', '!', '!', '!']],
    ['two prompts', { prompt: ['a', 'b'] }, ['a!', 'b!', '!', '!', '!']],
    ['two choices of two prompts', { prompt: ['a', 'b'], n: 2 }, ['a!', 'a!', 'b!', 'b!', '!']],
  ]
  for (const [says, body, texts] of rows) {
    const answer = JSON.parse(answered(body, choices(5))) as { choices: { text: string }[] }
    t.strictSame(
      answer.choices.map(({ text }) => text),
      texts,
      says,
    )
  }
})

t.test('prompts whose choices would repeat too much of them are refused', async t => {
  const most = 4 * 1024 * 1024
  const rows: [says: string, body: object][] = [
    ['one long prompt', { prompt: 'a'.repeat(most + 1) }],
    ['many choices', { prompt: 'a'.repeat(most / 100), n: 101 }],
    ['many prompts', { prompt: ['a', 'b'].map(letter => letter.repeat(most / 4)), n: 3 }],
  ]
  for (const [says, body] of rows) {
    const error = thrown(() => decode(body))
    t.ok(error instanceof GatewayError, says)
    t.match(error, { status: 400, param: 'echo', message: /4,194,304/ }, says)
    t.doesNotThrow(() => decode({ ...body, echo: false }), says)
  }
  t.doesNotThrow(() => decode({ prompt: 'a'.repeat(most / 4), n: 4 }))
})
