/** Where a client rightly sees something else than the provider said. Whatever does not stand here is the same. */
import type { Answer } from './answer.ts'
import type { Recording } from './recording.ts'

interface Difference {
  readonly why: string
  readonly clients: readonly string[]
  /** The recordings concerned; all by default. */
  readonly of?: (recording: Recording) => boolean
  sees(expected: Answer): Answer
}

const usage = (over: object) => (expected: Answer) =>
  expected.usage ? { ...expected, usage: { ...expected.usage, ...over } } : expected

const differences: readonly Difference[] = [
  {
    why: 'No count of the wire says what was written to a cache.',
    clients: ['generateContent'],
    sees: usage({ written: 0, written1h: 0 }),
  },
  {
    why: 'No count of the wire says how long a cache keeps what was written.',
    clients: ['responses', 'AI SDK'],
    sees: usage({ written1h: 0 }),
  },
  {
    why: 'A refusal has no member of its own: the reason says it.',
    clients: ['messages', 'generateContent'],
    of: ({ body, wire }) => wire.wire.startsWith('openai.') && /"refusal":"[^"]/.test(body),
    sees: expected => ({ ...expected, finish: 'content_filter' }),
  },
  {
    why: 'No ending of the wire has words for a refusal: they are text.',
    clients: ['chat completions', 'responses', 'generateContent', 'AI SDK'],
    sees: expected => ({ ...expected, text: expected.text + (expected.refusal ?? '') }),
  },
  {
    why: 'Results of a search are blocks of the wire, cited or not.',
    clients: ['messages'],
    sees: expected => ({ ...expected, urls: [...new Set([...expected.urls, ...(expected.found ?? [])])].sort() }),
  },
  {
    why: 'A reasoning item carries what its provider alone reads of a search.',
    clients: ['responses'],
    sees: expected => {
      const form = expected.form?.flatMap((kind, i, kinds) =>
        kind === 'web_search_call' && kinds[i - 1] !== 'reasoning' ? ['reasoning', kind] : [kind],
      )
      return form ? { ...expected, form } : expected
    },
  },
]

/** The client of a provider's own wire. */
const OWN = new Map([
  ['messages', 'anthropic'],
  ['responses', 'openai.responses'],
  ['generateContent', 'gemini'],
])

/** What a client of this name sees of a recording: the form of the answer where it is of the same wire. */
export function seenBy(client: string, recording: Recording): Answer {
  const seen = differences
    .filter(({ clients, of }) => clients.includes(client) && (of?.(recording) ?? true))
    .reduce<Answer>((answer, { sees }) => sees(answer), { ...recording.expected })
  delete seen.billed
  delete seen.found
  delete seen.refusal
  if (!recording.wire.wire.startsWith(OWN.get(client) ?? '-')) delete seen.form
  return seen
}
