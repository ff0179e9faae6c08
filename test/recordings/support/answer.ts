/** The one shape in which the readers of raw answers and of clients say what an answer was. */
export interface Usage {
  /** Cached and written tokens included. */
  input: number
  /** Reasoning included. */
  output: number
  cached: number
  written: number
  /** The part of `written` that is kept for an hour. */
  written1h: number
  reasoning: number
}

export interface Call {
  name: string
  args: unknown
}

export type Finish = 'stop' | 'length' | 'tool_calls' | 'content_filter'

export interface Answer {
  /** All words of the answer, those of a refusal too. */
  text: string
  reasoning: string
  calls: Call[]
  /** Addresses that the answer cites, without repetitions, sorted. */
  urls: string[]
  /** Null for an answer that failed. */
  finish: Finish | null
  /** Null where none was reported. */
  usage: Usage | null
  /** Counts that are charged, where they are not those of the report. */
  billed?: Usage
  /** Addresses that a search of the provider found, cited or not. */
  found?: string[]
  /** Words of a refusal beside the text. */
  refusal?: string
  /** Kinds of its parts in the terms of the wire, without repetitions in a row: a client of the same wire gets these. */
  form?: string[]
}

/** An answer as it grows. Ids tell the calls of one answer apart. */
export class Draft {
  text = ''
  refusal = ''
  reasoning = ''
  finish: Finish | null = null
  failed = false
  usage: Usage | null = null
  billed: Usage | undefined
  readonly calls: { id: string; name: string; json: string; args?: unknown }[] = []
  readonly urls = new Set<string>()
  readonly found = new Set<string>()
  readonly form: string[] = []

  call(id: string, name: string, args: unknown): void {
    this.calls.push(typeof args === 'string' ? { id, name, json: args } : { id, name, json: '', args: args ?? {} })
  }

  /** A part of this kind; parts of one kind in a row may be one. */
  part(kind: string): void {
    if (this.form.at(-1) !== kind) this.form.push(kind)
  }

  /** The finished answer. What a failed one had of calls, citations and counts is not compared. */
  answer(): Answer {
    if (this.failed || this.finish === null)
      return { text: this.text, reasoning: this.reasoning, calls: [], urls: [], finish: null, usage: null }
    const calls = this.calls.map(({ name, json, args }) => ({ name, args: args ?? argumentsOf(json) }))
    const finish = this.finish === 'stop' && calls.length > 0 ? 'tool_calls' : this.finish
    const { text, reasoning, usage, billed } = this
    const answer: Answer = { text, reasoning, calls, urls: [...this.urls].sort(), finish, usage }
    if (billed) answer.billed = billed
    if (this.refusal) answer.refusal = this.refusal
    if (this.form.length > 0) answer.form = this.form
    if (this.found.size > 0) answer.found = [...this.found]
    return answer
  }
}

/** JSON of any shape, as a reader meets it. */
export type Raw = ReturnType<typeof JSON.parse>

/** The value of a call's text: an object, which may stand in a text once more; else the text as it is. */
function argumentsOf(json: string): unknown {
  if (json.trim() === '' || json === 'null') return {}
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'string' ? argumentsOf(value) : value
  } catch {
    return json
  }
}
