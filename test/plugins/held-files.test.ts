/** Files that a provider holds for an account: whose request may name one. */
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { chat } from '../../src/operations/chat/index.ts'
import { thrown } from '../core/kit.ts'
import { deepFreeze, target } from './wire-kit.ts'

const naming = (file_id: string): ChatRequest => ({
  model: 'm',
  messages: [
    { role: 'user', content: 'Hi' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Read' },
        { type: 'file', file: { file_id } },
      ],
    },
  ],
})
const [messages] = anthropic.wires
const [studio] = gemini.wires
const own = { id: 'k', source: 'byok', secret: 's', fingerprint: 'f' } as const

t.test('no caller can name files of the operator; an organization can name its own', t => {
  const at = (over: Parameters<typeof target>[0] = {}) => target({ translator: messages!, ...over })
  const sent = (file: string, on = at()) => chat.adapted!(deepFreeze(naming(file)), on, false)
  const refusal = {
    status: 400,
    code: 'own_key_required',
    param: 'messages[1].content[1].file.file_id',
    failover: true,
  }
  t.match(thrown(() => sent('file_1')) as GatewayError, refusal)
  for (const on of [
    { ...at(), credential: own },
    at({ provider: { owner: 'org' } }),
    at({ provider: { nativeFields: ['file_id'] } }),
  ]) {
    t.strictSame(sent('file_1', on), naming('file_1'))
  }
  const google = at({ translator: studio! })
  for (const film of ['https://www.youtube.com/watch?v=x', 'https://youtu.be/x']) {
    t.strictSame(sent(film, google), naming(film), 'a film that anybody may see')
    t.match(thrown(() => sent(film)) as GatewayError, refusal, 'at another provider it is none')
  }
  for (const file of ['files/abc', 'gs://bucket/a', 'https://generativelanguage.googleapis.com/v1beta/files/abc']) {
    t.match(thrown(() => sent(file, google)) as GatewayError, refusal, file)
  }
  t.end()
})
