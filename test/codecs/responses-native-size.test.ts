/** What a provider of the Responses wire reads of a body beyond its chat form is held for. */
import t from 'tap'
import { nativeSize } from '../../src/codecs/responses/native.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'

const request: ChatRequest = { model: 'm', messages: [] }
const sizeOf = (...input: object[]) => nativeSize({ input }, request)

t.test('a picture that was made earlier counts as a picture of a prompt, whatever its bytes', t => {
  const picture = (result: string | null) => ({ type: 'image_generation_call', id: 'ig_1', result })
  t.equal(sizeOf({ type: 'message', role: 'user', content: 'Hi' }), 0)
  t.equal(sizeOf(picture(null)), 0)
  t.equal(sizeOf(picture('aGk=')), 6400)
  t.equal(sizeOf(picture('A'.repeat(1_000_000)), picture('aGk=')), 12_800)
  t.end()
})
