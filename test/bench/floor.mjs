/**
 * The least that a proxy on Node can do: `node floor.mjs UPSTREAM`. It reads and parses the body, serialises it again,
 * and pipes the answer back; a form goes on as it came, and an answer of images is parsed and serialised, too. Sends
 * `{ url }` to its parent.
 */
import { Pool } from 'undici'
import { listen } from './listen.mjs'

const pool = new Pool(process.argv[2], { connections: 8192, pipelining: 1 })

const IMAGES = '/v1/images/generations'

async function serve(req, res, given) {
  try {
    const type = req.headers['content-type']
    const { statusCode, headers, body } = await pool.request({
      method: 'POST',
      path: req.url,
      headers: { 'content-type': type, authorization: 'Bearer sk-bench' },
      body: type === 'application/json' ? JSON.stringify(JSON.parse(given.toString())) : given,
    })
    if (req.url === IMAGES) {
      const text = Buffer.from(JSON.stringify(await body.json()))
      res.writeHead(statusCode, { 'content-type': 'application/json', 'content-length': text.length }).end(text)
      return
    }
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

listen(serve)
