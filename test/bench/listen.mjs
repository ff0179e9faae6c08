/** How both floors listen: each body is read whole, and the address is told to the parent. */
import { createServer } from 'node:http'

/** @param {(req: import('node:http').IncomingMessage, res: import('node:http').ServerResponse, body: Buffer) => unknown} serve */
export function listen(serve) {
  const server = createServer((req, res) => {
    const body = []
    req.on('data', chunk => body.push(chunk))
    req.on('end', () => serve(req, res, Buffer.concat(body)))
  })
  server.keepAliveTimeout = 0
  server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, () => {
    process.send({ url: `http://127.0.0.1:${server.address().port}` })
  })
}
