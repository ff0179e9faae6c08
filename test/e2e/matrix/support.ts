/**
 * What the wires cannot do: the one source of the support table in `docs/wires.md`. Whatever does not stand here, every wire
 * must do alike.
 */
import { cases, countsOf } from './cases.ts'
import { wires } from './wires.ts'

export interface Limit {
  readonly wires: readonly string[]
  readonly case: string
  /** Completes «no: …». */
  readonly why: string
  /** What a client sees in place of the fields of the case's `expected`. */
  readonly instead: Readonly<Record<string, unknown>>
}

const gemini = ['gemini.generate', 'gemini.vertex']

export const support: readonly Limit[] = [
  {
    wires: ['openai.chat'],
    case: 'reasoning replayed over three turns',
    why: 'The wire has no field for it. For compatible providers that want it back, `reasoning_replay` in the manifest names one.',
    instead: { returned: [false, false, false] },
  },
  {
    wires: ['mistral.chat'],
    case: 'refusal',
    why: 'No finish reason of the wire says so: the model says in its text that it refuses.',
    instead: { finish: 'stop' },
  },
  {
    wires: [...gemini, 'bedrock.converse', 'cohere.chat'],
    case: 'words of a refusal',
    why: 'The wire reports that the model refused, and no more.',
    instead: { refusal: null },
  },
  {
    wires: ['mistral.chat'],
    case: 'words of a refusal',
    why: 'No finish reason of the wire says so: the model says in its text that it refuses.',
    instead: { refusal: null, finish: 'stop' },
  },
  {
    wires: [...gemini, 'mistral.chat', 'cohere.chat'],
    case: 'written tokens',
    why: 'The provider caches by itself and does not tell what it wrote: such tokens count as plain input.',
    instead: { usage: countsOf(1003, 7, { cached: 301 }) },
  },
  {
    wires: ['bedrock.converse', 'mistral.chat', 'cohere.chat'],
    case: 'reasoning tokens',
    why: 'The provider counts them among the completion tokens only.',
    instead: { usage: countsOf(40, 9) },
  },
]

export const limitOf = (wire: string, name: string): Limit | undefined =>
  support.find(limit => limit.case === name && limit.wires.includes(wire))

/** The table in Markdown: a mark for what works, a number for what does not, and why below. */
export function supportTable(): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const notes: string[] = []
  const note = (why: string) => {
    if (!notes.includes(why)) notes.push(why)
    return `no (${notes.indexOf(why) + 1})`
  }
  const rows = cases.map(({ name }) => {
    const cells = wires.map(({ wire }) => {
      const limit = limitOf(wire, name)
      return limit ? note(limit.why) : 'yes'
    })
    return line([name, ...cells])
  })
  return [
    line(['Case', ...wires.map(({ wire }) => `\`${wire}\``)]),
    line(['---', ...wires.map(() => '---')]),
    ...rows,
    '',
    ...notes.map((why, i) => `${i + 1}. ${why}`),
  ].join('\n')
}
