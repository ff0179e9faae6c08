/** A provider that answers each request with the recording that its path names first. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from '../../helpers/child.ts'
import { message } from '../../helpers/upstream/event-stream.mjs'
import type { Recording } from './recording.ts'

/** Serves `byName` and resolves with the address below which each has its own. */
export async function startProvider(t: Scope, byName: ReadonlyMap<string, Recording>): Promise<string> {
  const server = createServer((req, res) => {
    const recording = byName.get(req.url!.split('/')[1]!)
    req.resume().on('end', () => {
      if (recording) play(recording, res)
      else res.writeHead(404).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function play({ status, type, ends, body }: Recording, res: ServerResponse): void {
  const bytes = type === 'application/vnd.amazon.eventstream' ? framed(body) : Buffer.from(body)
  res.writeHead(status, { 'content-type': type })
  // In pieces that end within events and characters.
  const size = Math.max(1, Math.ceil(bytes.length / 3))
  for (let at = 0; at < bytes.length; at += size) res.write(bytes.subarray(at, at + size))
  if (ends === 'close' || ends === 'bare') res.end()
  else if (ends === 'pings') repeat(res, ': ping\n\n')
  else if (ends === 'reset') res.write('', () => setImmediate(() => res.socket?.resetAndDestroy()))
}

/** Goes on until the connection closes. */
function repeat(res: ServerResponse, piece: string): void {
  const timer = setInterval(() => res.write(piece), 50)
  res.on('close', () => clearInterval(timer))
}

/** One frame for each line. */
const framed = (body: string): Buffer =>
  Buffer.concat(
    body
      .split('\n')
      .filter(Boolean)
      .map(line => {
        const [[type, payload]] = Object.entries(JSON.parse(line) as Record<string, object>) as [[string, object]]
        const content = { ':content-type': 'application/json' }
        return type.endsWith('Exception')
          ? message({ ':message-type': 'exception', ':exception-type': type, ...content }, payload)
          : message({ ':message-type': 'event', ':event-type': type, ...content }, payload)
      }),
  )
