/** A gateway with three providers and tenants on it, and an operator at its command line. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { shared } from '../helpers/shared.ts'
import { startUpstream } from '../helpers/upstream.ts'

export type Tree = Record<string, unknown>

/** What the provider takes: the gateway's own key, and two of customers. */
export const good = ['sk-customer-good-0123456789abcdef', 'sk-customer-more-0123456789abcdef'] as const
export const bad = 'sk-customer-bad-0123456789abcdef'
export interface Ran {
  code: number | null
  stdout: string
  stderr: string
}

export interface Tenant {
  org: string
  project: string
  keyId: string
  key: string
}

export interface Answer {
  usage: { cost: number }
  metadata: { used_provider: string; routing: Tree[]; cached?: boolean }
  error?: { message: string; code: string; param: string | null }
}

const start = shared(async t => {
  const upstream = await startUpstream(t, { key: [upstreamSecret, ...good] })
  const gateway = await startGateway(t, {
    providers: {
      a: {
        base_url: upstream.url('a'),
        priority: 2,
        data_policy: { trains_on_data: false, gdpr: true },
        models: [
          testMapping,
          { ...testMapping, model: 'small', id: 'small-1', pricing: { prompt: '0', completion: '0' } },
        ],
      },
      b: { base_url: upstream.url('b'), models: [testMapping] },
      bare: {
        base_url: upstream.url('bare'),
        auth: { scheme: 'bearer', secret: '' },
        models: [{ ...testMapping, model: 'bare', id: 'bare-1' }],
      },
    },
    config: { custom_providers: { enabled: true } },
    env: { GATEWAY_ALLOW_PRIVATE_PROVIDERS: 'true' },
  })
  return { upstream, gateway }
})
let made = 0

/** Files that use it neither end nor reload it; each makes organizations of its own. */
export async function startTenancy(t: Test) {
  const { upstream, gateway } = await start()
  const command = commandsOf(gateway)

  /** Runs `gatewayctl` as an operator would, with `input` on its standard input. */
  async function ctl(args: string[], input = ''): Promise<Ran> {
    const script = fileURLToPath(new URL('../../bin/gatewayctl.js', import.meta.url))
    const env = { GATEWAY_ADMIN: gateway.adminUrl, GATEWAY_ADMIN_TOKEN: gateway.token, PATH: process.env.PATH ?? '' }
    const child = spawn(process.execPath, [script, ...args], { env, cwd: gateway.dir })
    const ran = { code: null as number | null, stdout: '', stderr: '' }
    child.stdout.on('data', chunk => (ran.stdout += chunk))
    child.stderr.on('data', chunk => (ran.stderr += chunk))
    child.stdin.end(input)
    ran.code = await new Promise(resolve => child.once('close', resolve))
    return ran
  }
  async function ctlJson<T = Tree>(t: Test, args: string[], input = ''): Promise<T> {
    const { code, stdout, stderr } = await ctl([...args, '--json'], input)
    t.strictSame([code, stderr], [0, ''], args.join(' '))
    return JSON.parse(stdout) as T
  }

  async function tenant(mode = 'credits', credits?: string, changes: object = {}): Promise<Tenant> {
    const name = `tenant-${++made}`
    const { id: org } = await command<{ id: string }>('orgs.create', { name })
    if (credits !== undefined) await command('credits.add', { organization: org, amount: credits })
    const { id: project } = await command<{ id: string }>('projects.create', {
      organization: org,
      name,
      mode,
      ...changes,
    })
    return { org, project, ...(await newKey(project)) }
  }
  async function newKey(project: string): Promise<{ keyId: string; key: string }> {
    const { id: keyId, key } = await command<{ id: string; key: string }>('keys.create', { project, name: 'k' })
    return { keyId, key }
  }
  const as = ({ key }: Pick<Tenant, 'key'>) => ({ authorization: `Bearer ${key}` })
  const ask = (tenant: Pick<Tenant, 'key'>, model = 'test', more: object = {}) =>
    gateway.chat({ model, messages: [{ role: 'user', content: 'Who pays?' }], ...more }, as(tenant))
  const addKey = ({ org }: Tenant, secret: string, provider = 'a', label = 'main') =>
    command<{ id: string; fingerprint: string }>('provider-keys.add', { organization: org, provider, label, secret })
  const balance = ({ org }: Tenant) => command<{ balance: string; used: string }>('credits.show', { organization: org })

  async function answer(response: Response): Promise<Answer & { status: number }> {
    return { ...((await response.json()) as Answer), status: response.status }
  }

  const books = openBooks(t, gateway)
  const group = groupsOf(t, { gateway, upstream, books, secrets: [...good, bad] })
  return { upstream, gateway, command, ctl, ctlJson, tenant, newKey, as, ask, addKey, balance, answer, group }
}
