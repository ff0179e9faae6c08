/** A token endpoint on a loopback port, and a service account that it knows. */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
export const privateKey = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** The text of a key file, as it is written over several lines. */
export const account = (more: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify(
    { type: 'service_account', private_key_id: 'kid-1', private_key: privateKey, client_email: 'a@acme.test', ...more },
    null,
    2,
  )

export interface Asked {
  readonly form: URLSearchParams
  readonly header: Record<string, unknown>
  readonly claims: Record<string, unknown>
  /** Whether the account's key made the signature. */
  readonly signed: boolean
}

type Answer = (res: ServerResponse, count: number) => void

export const json =
  (status: number, body: unknown): Answer =>
  res => {
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

export interface TokenEndpoint {
  readonly url: string
  readonly asked: Asked[]
  answer: Answer
  close(): Promise<void>
}

/** Answers with `token-1`, `token-2`, … that last 3599 seconds, unless `answer` is replaced. */
export async function tokenEndpoint(): Promise<TokenEndpoint> {
  const asked: Asked[] = []
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      asked.push(read(Buffer.concat(chunks).toString()))
      endpoint.answer(res, asked.length)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const endpoint: TokenEndpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    asked,
    answer: (res, count) =>
      json(200, { access_token: `token-${count}`, expires_in: 3599, token_type: 'Bearer' })(res, 0),
    close: () => {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
  return endpoint
}

function read(body: string): Asked {
  const form = new URLSearchParams(body)
  const [header = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.')
  const decode = (part: string) =>
    JSON.parse(Buffer.from(part, 'base64url').toString() || '{}') as Record<string, unknown>
  const signed = verify(
    'RSA-SHA256',
    Buffer.from(`${header}.${claims}`),
    createPublicKey(keys.publicKey.export({ type: 'spki', format: 'pem' })),
    Buffer.from(signature, 'base64url'),
  )
  return { form, header: decode(header), claims: decode(claims), signed }
}
