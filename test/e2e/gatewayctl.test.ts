/** `gatewayctl` as it is shipped, from a folder that knows nothing of the gateway: what a bundle loads late is there. */
import { join } from 'node:path'
import t from 'tap'
import { Child } from '../helpers/child.ts'
import { plainGateway } from './plain.ts'

const bin = join(import.meta.dirname, '../../bin/gatewayctl.js')
const { gateway } = await plainGateway()

t.test('the shipped command does what each of its commands loads code for', async t => {
  const place = ['--admin', gateway.adminUrl, '--config', gateway.configPath]
  const commands: [args: string[], said: RegExp, env?: Record<string, string>][] = [
    [['status', ...place], /^state +ready$/m],
    [['config', ...place], /^providers:/m],
    [['config', '--json', ...place], /^\{/],
    [['reload', ...place], /version [0-9a-f]{12}/],
    [['keys', 'list', ...place], /default/],
    [['metrics', ...place], /gateway_requests_total/],
    [['check', '--config', gateway.configPath], /is valid: version/],
    [['chat', 'Hello', '--stream', '--model', 'test', '--url', gateway.url], /\S/, { GATEWAY_API_KEY: gateway.key }],
    [['chat', 'Hello', '--model', 'test', ...place], /\S/],
    [['keys', 'list', ...place], /^\S+ +gatewayctl .* expired /m],
  ]
  for (const [args, said, env = {}] of commands) {
    const ctl = new Child(bin, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    t.equal(await ctl.exited, 0, `${args.join(' ')}: ${ctl.stderr}`)
    t.match(ctl.stdout, said, args.join(' '))
  }
})
