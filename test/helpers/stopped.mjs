/**
 * Listens with a backlog of one and prints `{"port":N}`; its parent suspends it, so that no connection is ever
 * accepted.
 */
import { createServer } from 'node:net'

const server = createServer()
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  console.log(JSON.stringify({ port: server.address().port }))
})
process.stdin.resume().once('close', () => process.exit(0))
