/** What the load generator asks and the simulated provider answers: about 1.3 kB in, 0.9 kB out, or 64 chunks. */

export const CHUNKS = 64
/** As the whole prompt: the stream never ends, and has another chunk of text every other second. */
export const SLOW = 'slow'
/** As the whole prompt: one chunk of the stream a millisecond. */
export const PACED = 'paced'
/** As the whole prompt: all chunks of the stream come in one piece. */
export const BURST = 'burst'
/** As the whole prompt: the stream's next chunk of text comes when it is asked for. */
export const STEPPED = 'stepped'

const words =
  'alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa'.split(' ')
export const pieces = Array.from({ length: CHUNKS }, (_, at) => `${words[at % words.length]} `)
/** The text of every answer. */
export const text = pieces.join('')
export const usage = { prompt_tokens: 310, completion_tokens: CHUNKS, total_tokens: 310 + CHUNKS }

const PROMPT_BYTES = 1_000
const filler = bytes => 'The quick brown fox jumps over the lazy dog; '.repeat(Math.ceil(bytes / 45)).slice(0, bytes)

/** A chat request as JSON text, with a prompt of `prompt` bytes or that very text. */
export function request({ model, stream = false, prompt = PROMPT_BYTES }) {
  return JSON.stringify({
    model,
    messages: [
      { role: 'system', content: 'You are a careful assistant. Answer in the language of the question, briefly.' },
      { role: 'user', content: typeof prompt === 'string' ? prompt : filler(prompt) },
    ],
    temperature: 0.7,
    top_p: 0.95,
    max_tokens: 512,
    seed: 7,
    ...(stream && { stream: true, stream_options: { include_usage: true } }),
  })
}

const envelope = {
  id: 'chatcmpl-bench-0123456789abcdef',
  created: 1_760_000_000,
  model: 'bench-1',
  system_fingerprint: 'fp_bench',
}
const choice = rest => [{ index: 0, ...rest, logprobs: null }]

/** The provider's unary answer. */
export const whole = JSON.stringify({
  ...envelope,
  object: 'chat.completion',
  choices: choice({ message: { role: 'assistant', content: text, refusal: null }, finish_reason: 'stop' }),
  usage,
})

const event = (choices, rest) =>
  `data: ${JSON.stringify({ ...envelope, object: 'chat.completion.chunk', choices, ...rest })}\n\n`
const delta = (content, finish_reason = null) => event(choice({ delta: content, finish_reason }))

/** The provider's stream, one server-sent event each. */
export const frames = [
  delta({ role: 'assistant', content: '' }),
  ...pieces.map(content => delta({ content })),
  delta({}, 'stop'),
  event([], { usage }),
  'data: [DONE]\n\n',
]

/** Throws unless a unary answer says everything that the provider said. */
export function checkWhole(body) {
  const { choices, usage: claimed } = JSON.parse(body)
  check(choices[0].message.content, choices[0].finish_reason, claimed)
}

/** Throws unless a stream says everything that the provider said, and ends as a stream must. */
export function checkStream(body) {
  if (!body.endsWith('data: [DONE]\n\n')) throw new Error(`the stream does not end with [DONE]: …${body.slice(-200)}`)
  let content = ''
  let finish
  let claimed
  for (const line of body.split('\n\n')) {
    if (line === '' || line === 'data: [DONE]') continue
    const { choices, usage } = JSON.parse(line.slice('data: '.length))
    content += choices?.[0]?.delta.content ?? ''
    finish = choices?.[0]?.finish_reason ?? finish
    claimed = usage ?? claimed
  }
  check(content, finish, claimed)
}

/** Throws unless this is the text, the finish reason and the usage of the answer. */
export function check(content, finish, claimed) {
  if (content !== text) throw new Error(`the answer's text is ${JSON.stringify(content)}`)
  if (finish !== 'stop') throw new Error(`the answer's finish reason is ${finish}`)
  for (const name of ['prompt_tokens', 'completion_tokens']) {
    if (claimed?.[name] !== usage[name]) throw new Error(`the answer's ${name} is ${claimed?.[name]}`)
  }
}
