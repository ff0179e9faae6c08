/** The chart for Helm in `deploy`: what it renders fits the schemas of Kubernetes, and the gateway reads its configuration. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { readCatalog } from '../../src/app/check.ts'
import { root } from '../helpers/sources.ts'

const chart = join(root, 'deploy/helm/model-gateway')
const read = (path: string): string => readFileSync(join(chart, path), 'utf8')
const programOf = (name: string, word: string): string | undefined =>
  [join(root, '.tools/bin', name), name].find(path => spawnSync(path, [word]).status === 0)
const helm = programOf('helm', 'version')
const validator = programOf('kubernetes-validate', '--version')
const skip = helm === undefined && 'helm is not installed'

type Tree = Record<string, unknown>
interface Container {
  readonly name: string
  readonly env?: { readonly name: string }[]
  readonly command?: string[]
  readonly securityContext: Tree
  readonly lifecycle?: Tree
}
interface Pod {
  readonly terminationGracePeriodSeconds?: number
  readonly securityContext: Tree
  readonly automountServiceAccountToken: boolean
  readonly initContainers?: Container[]
  readonly containers: Container[]
}
interface Resource {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly annotations?: Record<string, string> }
  readonly spec: Tree & { readonly template: { readonly spec: Pod } }
  readonly data: Record<string, string>
}

/** Runs helm on the chart with values; a build without a release has an old version of Kubernetes. */
function run(values: object, ...words: string[]) {
  const args = ['gw', chart, '--kube-version', '1.33.0', '-f', '-', ...words]
  return spawnSync(helm!, ['template', ...args], { input: JSON.stringify(values), encoding: 'utf8' })
}
const everything = {
  autoscaling: { enabled: true },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  networkPolicy: { enabled: true, metricsFrom: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }] },
  ingress: { enabled: true, className: 'nginx', tlsSecret: 'gateway-tls' },
  providers: {
    secrets: ['provider-keys'],
    manifests: {
      acme: {
        provider: 'acme',
        name: 'Acme AI',
        base_url: 'https://api.acme.example/v1',
        auth: { scheme: 'bearer', secret: '$' + '{ACME_API_KEY:-}' },
        wires: { chat: 'openai.chat' },
        models: 'open',
        open: { pricing: { prompt: '2.50', completion: '10.00' } },
      },
    },
  },
  imagePullSecrets: [{ name: 'registry' }],
  env: [{ name: 'GATEWAY_LOG_LEVEL', value: 'warn' }],
  nodeSelector: { 'kubernetes.io/arch': 'amd64' },
  priorityClassName: 'high',
  config: { server: { public_url: 'https://gateway.example.com' } },
  image: { digest: `sha256:${'0'.repeat(64)}` },
}
const variants: Readonly<Record<string, { values: object; words?: string[] }>> = {
  'the first installation': { values: {} },
  'an upgrade with everything': { values: everything, words: ['--is-upgrade'] },
  'one node with SQLite': { values: { replicas: 1, stores: { postgres: false, redis: false } } },
}

t.test('the values fit their schema, which refuses others, and the version is that of the package', async t => {
  const validate = new Ajv({ strict: false }).compile(JSON.parse(read('values.schema.json')) as object)
  const values = parse(read('values.yaml')) as Tree
  t.ok(validate(values), JSON.stringify(validate.errors))
  t.notOk(validate({ ...values, replica: 3 }))
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  t.match(parse(read('Chart.yaml')), { version, appVersion: version })
  const { autoscaling } = values as { autoscaling: { metric: string } }
  t.match(readFileSync(join(root, 'docs/reference/metrics.md'), 'utf8'), `| \`${autoscaling.metric}\``)
})

t.test('helm has no remark on the chart', { skip }, async t => {
  const { stdout, status } = spawnSync(helm!, ['lint', '--strict', chart], { encoding: 'utf8' })
  t.equal(status, 0, stdout)
})

for (const [name, { values, words = [] }] of Object.entries(variants)) {
  t.test(name, { skip }, async t => {
    const { stdout, stderr, status } = run(values, ...words)
    t.equal(status, 0, stderr)
    const resources = parseAllDocuments(stdout).flatMap(one => (one.contents ? [one.toJS() as Resource] : []))
    const only = (kind: string) => resources.filter(one => one.kind === kind)

    t.test(
      'each field is one of Kubernetes',
      { skip: validator === undefined && 'kubernetes-validate is not installed' },
      async t => {
        const file = join(t.testdir({}), 'rendered.yaml')
        const known = resources.filter(({ kind }) => kind !== 'ServiceMonitor')
        writeFileSync(file, known.map(one => JSON.stringify(one)).join('\n---\n'))
        for (const version of ['1.27.0', '1.33.0']) {
          const { stdout, status } = spawnSync(validator!, ['--strict', '--quiet', '-k', version, file], {
            encoding: 'utf8',
          })
          t.equal(status, 0, stdout)
        }
      },
    )

    t.test('the gateway reads its configuration', async t => {
      for (const { data } of only('ConfigMap')) {
        const dir = t.testdir({})
        mkdirSync(join(dir, 'providers.d'), { recursive: true })
        for (const [file, text] of Object.entries(data)) {
          writeFileSync(join(dir, file === 'gateway.yaml' ? file : `providers.d/${file}`), text)
        }
        const env = { DATABASE_URL: 'postgres://gateway@db/gateway', REDIS_URL: 'redis://cache' }
        const { catalog } = await readCatalog(join(dir, 'gateway.yaml'), { env })
        t.equal(catalog.providers.has('acme'), 'acme.yaml' in data)
      }
    })

    t.test('pods are restricted, drain before they end, and take secrets by reference', async t => {
      for (const { kind, spec } of [...only('Deployment'), ...only('Job')]) {
        const pod = spec.template.spec
        t.match(pod, { automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } }, kind)
        t.match(pod.securityContext, { seccompProfile: { type: 'RuntimeDefault' } }, kind)
        for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
          const given = (container.env ?? []).map(one => one.name)
          const { env = [] } = values as { env?: { name: string }[] }
          const absent = env.filter(one => !given.includes(one.name))
          t.strictSame(absent, [], `${kind} ${container.name} has each variable that its configuration may name`)
          t.match(container.securityContext, {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          })
        }
        if (kind === 'Job') continue
        t.match(pod.containers[0], {
          lifecycle: { preStop: { exec: { command: ['/usr/local/bin/gatewayctl', 'drain'] } } },
          livenessProbe: { httpGet: { path: '/live', port: 'admin' } },
          readinessProbe: { httpGet: { path: '/ready', port: 'admin' } },
        })
        const { server } = parse(only('ConfigMap')[0]!.data['gateway.yaml']!) as { server: Record<string, string> }
        const [drain, delay] = [server.drain, server.drain_delay].map(text => Number.parseInt(text!, 10))
        t.ok(pod.terminationGracePeriodSeconds! >= drain! + delay! + 15)
      }
      t.equal(only('Secret').length, 0)
    })

    t.test('an update takes no node away before another one is ready', async t => {
      const [deployment] = only('Deployment')
      const isShared = only('PersistentVolumeClaim').length === 0
      t.match(
        deployment!.spec.strategy,
        isShared ? { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0 } } : { type: 'Recreate' },
      )
      const [job] = only('Job')
      t.equal(job !== undefined, isShared)
      if (!job) return
      t.equal(job.metadata.annotations!['helm.sh/hook'], 'pre-upgrade')
      t.strictSame(job.spec.template.spec.containers[0]!.command, ['/usr/local/bin/gatewayctl', 'migrate'])
      const waits = deployment!.spec.template.spec.initContainers?.[0]?.command
      if (words.includes('--is-upgrade')) {
        t.strictSame(waits, ['/usr/local/bin/gatewayctl', 'migrate', '--wait', '120s'])
      }
    })
  })
}

t.test('wrong values are refused by name', { skip }, async t => {
  const rows: [object, RegExp][] = [
    [{ replica: 3 }, /replica/],
    [{ replicas: 0 }, /replicas/],
    [{ stores: { postgres: false }, replicas: 2 }, /replicas/],
    [{ stores: { postgres: false }, replicas: 1, autoscaling: { enabled: true } }, /enabled/],
    [{ image: { digest: 'latest' } }, /digest/],
    [{ config: { server: { drain: '1m' } } }, /drain/],
    [{ runAsUser: 0 }, /runAsUser/],
    [{ migration: { wait: 120 } }, /wait/],
  ]
  for (const [values, said] of rows) {
    const { status, stderr } = run(values)
    t.not(status, 0, JSON.stringify(values))
    t.match(stderr, said)
  }
})
