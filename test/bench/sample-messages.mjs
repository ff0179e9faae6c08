/** The same streamed answer on the Anthropic wire, which the gateway turns into OpenAI's chunks. */
import { check, pieces, usage } from './sample.mjs'

const { prompt_tokens: input_tokens, completion_tokens: output_tokens } = usage

const event = data => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

/** One server-sent event each. */
export const frames = [
  event({
    type: 'message_start',
    message: {
      id: 'msg_bench0123456789abcdef',
      type: 'message',
      role: 'assistant',
      model: 'bench-messages-1',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 },
    },
  }),
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  ...pieces.map(text => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
  event({ type: 'content_block_stop', index: 0 }),
  event({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens },
  }),
  event({ type: 'message_stop' }),
]

/** Throws unless a stream of this wire says everything that the provider said, and ends as it must. */
export function checkMessages(body) {
  if (!body.endsWith(frames.at(-1))) throw new Error(`the stream does not end with message_stop: …${body.slice(-200)}`)
  let content = ''
  let finish
  let completion_tokens
  for (const block of body.split('\n\n')) {
    if (block === '') continue
    const { delta, usage: reported } = JSON.parse(block.slice(block.indexOf('data: ') + 'data: '.length))
    content += delta?.text ?? ''
    if (delta?.stop_reason === 'end_turn') finish = 'stop'
    completion_tokens = reported?.output_tokens ?? completion_tokens
  }
  check(content, finish, { prompt_tokens: input_tokens, completion_tokens })
}
