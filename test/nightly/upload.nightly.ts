/** What a large upload costs in memory while its provider has yet to answer. */
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { figure } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { inspected, memory } from '../helpers/memory.ts'
import { scripted } from '../helpers/scripted.ts'

const MIB = 1024 * 1024
const FILE_MIB = 60
const WARM = 5
const LOOK_MS = 10
/** Between looks at memory that V8 gives back some time after it has collected. */
const SETTLE_MS = 300
const SETTLED_LOOKS = 4

t.test('an upload of 60 MiB is resident at most 1.2 times', async t => {
  const provider = await scripted(t)
  const gateway = await startGateway(t, {
    models: [
      { id: 'hear', name: 'hear', family: 'test', input: ['audio'], output: ['text'], operations: ['transcriptions'] },
    ],
    providers: {
      acme: {
        base_url: provider.url,
        wires: { transcriptions: 'openai.transcriptions' },
        models: [{ model: 'hear', pricing: { input_audio_hour: '0.36' } }],
      },
    },
    env: inspected,
  })
  const send = (bytes: Buffer) => {
    const form = new FormData()
    form.append('model', 'hear')
    form.append('file', new Blob([new Uint8Array(bytes)]), 'a.mp3')
    const headers = { authorization: `Bearer ${gateway.key}` }
    return fetch(`${gateway.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form })
  }
  provider.answers({ json: { text: 'Hi' } })
  for (let n = 0; n < WARM; n++) t.equal((await send(randomBytes(MIB))).status, 200)
  let before = (await memory(gateway)).rss
  for (let settled = 0; settled < SETTLED_LOOKS; ) {
    await sleep(SETTLE_MS)
    const { rss } = await memory(gateway)
    settled = rss > before - 1 ? settled + 1 : 0
    before = Math.min(before, rss)
  }

  const held: ServerResponse[] = []
  provider.answers((res: ServerResponse) => void held.push(res))
  const answer = send(randomBytes(FILE_MIB * MIB))
  let most = 0
  while (held.length === 0) {
    most = Math.max(most, (await gateway.rss()) / MIB)
    await sleep(LOOK_MS)
  }
  const kept = (await memory(gateway)).rss
  held[0]!.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"Hi"}')
  t.equal((await answer).status, 200)
  const told = (what: string, value: number, atMost?: number) =>
    figure(t, { id: 'upload', what, value, unit: 'x', ...(atMost !== undefined && { atMost }) })
  told('resident memory of an upload while its provider has it', (kept - before) / FILE_MIB, 1.2)
  told('the most while it comes and goes, with what is not collected yet', (most - before) / FILE_MIB)
  const after = (await memory(gateway)).rss
  t.comment(`MiB resident before ${Math.round(before)}, with it ${Math.round(kept)}, after ${Math.round(after)}`)
  await checkInvariants(t, gateway)
})
