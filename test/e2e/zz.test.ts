import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

const MIB = 1048576
const upstream = await startUpstream(t)
const gateway = await startGateway(t, {
  config: { endpoints: { chat: { admission: { lag: '100s' } } } },
  providers: {
    endless: {
      base_url: upstream.url('endless'),
      timeouts: { first_event: '20s', idle: '20s', total: '100s' },
      models: [testMapping],
    },
  },
  env: { NODE_OPTIONS: process.env.NO ?? '' },
})
await upstream.script('endless', [
  {
    raw: [
      {
        text: `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(Number(process.env.EV ?? 16000)) } }] })}\n\n`,
        times: 1e9,
      },
    ],
  },
])
const idle = async () => {
  const socket = connect(gateway.port, '127.0.0.1')
  socket.on('error', () => undefined)
  const body = JSON.stringify({ model: 'test', stream: true, messages: [{ role: 'user', content: 'x' }] })
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  await once(socket, 'readable')
  return socket
}
const sent = async () => (await upstream.record('endless')).reduce((sum, { chunksSent }) => sum + chunksSent, 0)
const settled = async () => {
  for (let [last, now] = [-1, await sent()]; now !== last; [last, now] = [now, await sent()]) await sleep(300)
}
const stat = async (n: string) => {
  const m = await gateway.metrics()
  const sm = readFileSync(`/proc/${gateway.pid}/smaps`, 'utf8')
  let cur = ''
  const by: Record<string, number> = {}
  for (const l of sm.split('\n')) {
    const h = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)$/.exec(l)
    if (h) cur = h[1] || 'anon'
    const r = /^Rss:\s+(\d+)/.exec(l)
    if (r) by[cur] = (by[cur] ?? 0) + Number(r[1])
  }
  console.error(
    'DBG',
    n,
    ((await gateway.rss()) / MIB).toFixed(1),
    ...[
      ...m.matchAll(
        /^(nodejs_(?:external|heap_size_(?:used|total))\w*|nodejs_heap_space_size_used_bytes\{space="(?:new|old|large_object)"\}) (\S+)$/gm,
      ),
    ].map(x => `${x[1]!.slice(7).replace(/heap_space_size_used_bytes.space=/, '')}=${(Number(x[2]) / MIB).toFixed(1)}`),
    Object.entries(by)
      .sort((a, b) => b[1] - a[1])
      .slice(0, 3)
      .map(([k, v]) => `${k}=${(v / 1024).toFixed(1)}`)
      .join(' '),
  )
}
const all: Socket[] = []
await stat('start')
for (const n of [20, 40, 40]) {
  all.push(...(await Promise.all(Array.from({ length: n }, idle))))
  await settled()
  await stat(`${all.length}`)
}
if (process.env.SNAP) {
  gateway.signal('SIGUSR2')
  await sleep(3000)
}
await stat(`gc`)
for (const s of all) s.destroy()
await upstream.record('endless', { ended: all.length })
await stat('gone')
