/** A large file of a form, from the socket of its client to the body for its provider: what is kept, and until when. */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import t from 'tap'
import { plugin as openai } from '../../plugins/openai.ts'
import { transcriptions as codec } from '../../src/codecs/transcriptions.ts'
import type { Translator } from '../../src/core/translator.ts'
import { readBody } from '../../src/http/body.ts'
import { BodyGuard } from '../../src/http/body-guard.ts'
import type { IncomingRequest } from '../../src/http/incoming-request.ts'
import type { Form } from '../../src/lib/body.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { bodyOf, type Content } from '../../src/upstream/content.ts'
import { target } from '../plugins/wire-kit.ts'

const MIB = 1024 * 1024
const wire = openai.wires.find(({ wire }) => wire === 'openai.transcriptions') as Translator<'transcriptions'>

t.test('a file of 60 MiB is held once, goes out in its pieces twice, and is freed at the commit', async t => {
  const chunk = Buffer.alloc(64 * 1024, 1)
  const text = (name: string, value: string) =>
    Buffer.from(`--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
  const chunks = [
    Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'),
    ...Array.from({ length: 60 * 16 }, () => chunk),
    Buffer.from('\r\n'),
    text('model', 'acme-hear'),
    text('language', 'en'),
    Buffer.from('--b--\r\n'),
  ]
  const budget = new MemoryBudget(256 * MIB, { memory: () => 0 })
  const guard = new BodyGuard(budget, () => 'org')
  const req = Object.assign(Readable.from(chunks), { headers: { 'content-type': 'multipart/form-data; boundary=b' } })
  const rules = { body: 'multipart', bodyLimit: 64 * MIB, codec: {} } as const
  const { value, release } = await readBody(req as unknown as IncomingRequest, {} as ServerResponse, rules, guard)
  t.ok(budget.used >= 60 * MIB && budget.used <= 1.2 * 60 * MIB, `${budget.used} bytes are accounted for`)

  const request = codec.decode(value as Form)
  t.match(request, { model: 'acme-hear', language: 'en' }, 'fields behind the file are read')
  for (const attempt of [1, 2]) {
    const { body } = bodyOf(wire.encode(request, target({ mapping: { externalId: 'hear-1' } }), false)) as Content
    let copied = 0
    let shared = 0
    for (const { buffer, length } of body as readonly Buffer[]) {
      if (buffer === chunk.buffer) shared += length
      else copied += length
    }
    t.ok(shared >= 59 * MIB, `attempt ${attempt} sends the pieces of the socket`)
    t.ok(copied <= 128 * 1024, `attempt ${attempt} copies ${copied} bytes`)
  }

  release!()
  t.strictSame(request.file!.pieces, [], 'the pieces are released')
  t.equal(budget.used, 0, 'and their memory is given back')
})
