/** `GET /openapi.json`: the API as a document, for people and for programs that make clients. */

import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { json } from '../codecs/json.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import { type Reply, value, written } from '../core/reply.ts'

/** The document of some settings, as it is sent. */
interface Written {
  readonly plain: Buffer
  readonly gzipped: Buffer
  readonly etag: string
}

/** Describes `endpoints`. Open to all; made once, at the first request. */
export function openApi(endpoints: () => readonly Endpoint[]): Endpoint {
  const made = new Map<boolean, Promise<Written>>()
  return {
    name: 'openapi',
    method: 'GET',
    path: '/openapi.json',
    chain: 'local',
    open: true,
    codec: json,
    bodyLimit: 0,
    async serve(ex, { version }) {
      const { enabled: realtime } = ex.snapshot.realtime
      const document = made.get(realtime) ?? write(endpoints(), { version, realtime })
      made.set(realtime, document)
      return replyOf(ex, await document)
    },
  }
}

async function write(endpoints: readonly Endpoint[], settings: { version: string; realtime: boolean }) {
  // Few processes are asked for it.
  const { documentOf } = await import('../openapi/document.ts')
  const plain = Buffer.from(JSON.stringify(documentOf(endpoints, settings)))
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`
  return { plain, gzipped: await promisify(gzip)(plain), etag }
}

function replyOf(ex: Exchange, { plain, gzipped, etag }: Written): Reply {
  const known = ex.header('if-none-match')
  const isKnown = known !== undefined && (known.trim() === '*' || known.includes(etag))
  const isPacked = /\bgzip\b(?!;\s*q=0(?:\.0*)?(?:,|$))/.test(ex.header('accept-encoding') ?? '')
  const reply = isKnown ? value(undefined, 304) : written(isPacked ? gzipped : plain)
  reply.headers.push('etag', etag, 'vary', 'accept-encoding', 'cache-control', 'no-cache')
  if (isPacked && !isKnown) reply.headers.push('content-encoding', 'gzip')
  return reply
}
