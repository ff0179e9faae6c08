/** Scripted services of AWS on a loopback port, and an environment in which nothing else is found. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** By method and path; a text is an answer of status 200, and what is not there has 404. */
type Answers = Readonly<Record<string, string | { readonly status: number; readonly text: string }>>

export interface Services {
  readonly url: string
  readonly asked: Asked[]
  readonly answers: Answers
}

export async function awsServices(t: Test, answers: Answers): Promise<Services> {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '', headers } = request
    asked.push({ method, path, headers, body: Buffer.concat(await request.toArray()).toString() })
    const answer = answers[`${method} ${path}`] ?? { status: 404, text: '' }
    const { status, text } = typeof answer === 'string' ? { status: 200, text: answer } : answer
    response.writeHead(status).end(text)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => server.close(resolve)))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, answers }
}

/** Gives the process these variables in place of all that AWS reads, until the test ends. */
export function awsEnvironment(t: Test, env: Readonly<Record<string, string>>): void {
  const before = { ...process.env }
  t.teardown(() => {
    process.env = before
  })
  const others = Object.entries(before).filter(([name]) => !name.startsWith('AWS_') && name !== 'HOME')
  process.env = { ...Object.fromEntries(others), HOME: '/nowhere', AWS_EC2_METADATA_DISABLED: 'true', ...env }
}
