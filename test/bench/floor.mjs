/**
 * The least that a proxy on Node can do: `node floor.mjs UPSTREAM`. It reads and parses the body, serialises it again,
 * and pipes the answer back. Sends `{ url }` to its parent.
 */
import { createServer } from 'node:http'
import { Pool } from 'undici'

const pool = new Pool(process.argv[2], { connections: 8192, pipelining: 1 })

async function serve(req, res, text) {
  try {
    const { statusCode, headers, body } = await pool.request({
      method: 'POST',
      path: req.url,
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-bench' },
      body: JSON.stringify(JSON.parse(text)),
    })
    const length = headers['content-length']
    res.writeHead(statusCode, { 'content-type': headers['content-type'], ...(length && { 'content-length': length }) })
    // A client that leaves takes its upstream connection along; undici reports that as an error of the body.
    res.on('close', () => body.destroy())
    body.on('error', () => res.destroy()).pipe(res)
  } catch (error) {
    if (!res.headersSent) res.writeHead(502, { 'content-type': 'text/plain' })
    res.end(String(error))
  }
}

const server = createServer((req, res) => {
  const body = []
  req.on('data', chunk => body.push(chunk))
  req.on('end', () => serve(req, res, Buffer.concat(body).toString()))
})
server.keepAliveTimeout = 0
server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, () => {
  process.send({ url: `http://127.0.0.1:${server.address().port}` })
})
