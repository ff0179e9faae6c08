/** What happens while the gateway runs: reloads, and files that change in all the ways that editors change them. */
import { EventEmitter, once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { ConfigError } from '../../src/config/error.ts'
import { Loader } from '../../src/config/load.ts'
import { ConfigManager, type ReloadResult } from '../../src/config/manager.ts'
import { watchConfig } from '../../src/config/watch.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import {
  base,
  env,
  type Files,
  fakeRegistries,
  GATEWAY,
  gatewayYaml,
  KEY,
  MODELS,
  modelsYaml,
  PROVIDER,
  providerYaml,
  ref,
  refusal,
  writeFiles,
} from './kit.ts'

const root = t.testdir({})
const DEADLINE_MS = 60_000

/** A manager over files of a fresh folder, and every result that it reports. */
function managed(files: Files = base, folder = mkdtempSync(join(root, 'reload-'))) {
  const results: ReloadResult[] = []
  let wake = () => {}
  const registries = fakeRegistries()
  const manager = new ConfigManager({
    path: writeFiles(folder, files),
    env: { ...env, BLANK: ' ' },
    registries,
    onResult: result => {
      results.push(result)
      wake()
    },
  })
  /** Waits for a result, seen or to come, from the first that was not taken before. */
  let taken = 0
  const next = async (wanted: (result: ReloadResult) => boolean): Promise<ReloadResult> => {
    const deadline = AbortSignal.timeout(DEADLINE_MS)
    for (;;) {
      while (taken < results.length) {
        const result = results[taken++]!
        if (wanted(result)) return result
      }
      if (deadline.aborted) throw new Error(`no such result; got ${JSON.stringify(results)}`)
      await new Promise<void>(resolve => {
        wake = resolve
        deadline.addEventListener('abort', () => resolve(), { once: true })
      })
    }
  }
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  return { folder, manager, registries, results, next, write }
}

t.test('a reload replaces the snapshot when something changed, and only then', async t => {
  const { manager, registries, results, write } = managed()
  t.throws(() => manager.current, /start/)
  const first = await manager.start()
  first.retain()
  t.strictSame(await manager.reload(), {
    changed: false,
    version: first.version,
    previous: first.version,
    restartNeeded: [],
    warnings: [],
  })
  t.equal(manager.current, first)

  write(GATEWAY, gatewayYaml.replace('rpm: 600', 'rpm: 601'))
  const { changed, version, previous } = await manager.reload()
  t.strictSame([changed, previous, version], [true, first.version, manager.current.version])
  t.not(manager.current, first)
  t.ok(
    registries.made.every(made => made.disposed === 0),
    'an exchange still runs on the old one',
  )
  first.release()
  t.equal(registries.made.filter(made => made.disposed === 1).length, registries.made.length / 2)
  t.match(results, [
    { ok: true, changed: false, version: first.version },
    { ok: true, changed: true, version, at: Number },
  ])
})

t.test('CF-01 a reload that fails changes nothing, and is reported', async t => {
  const { manager, registries, results, write } = managed()
  const { version } = await manager.start()
  const made = registries.made.length
  const rows: [string, string, string][] = [
    [
      GATEWAY,
      gatewayYaml.replace('- route', '- rout'),
      `${GATEWAY}:10:7: unknown filter "rout"; did you mean "route"?`,
    ],
    [GATEWAY, '', `${GATEWAY}:1:1: the file is empty`],
    [
      GATEWAY,
      gatewayYaml.replace('drain: 30s', 'drain: 31s').replace('gateway.db', 'other.db'),
      `${GATEWAY}:1:39: server.drain, stores.sqlite cannot change while the gateway runs; restart it, or undo the change`,
    ],
    [GATEWAY, gatewayYaml, 'not refused'],
    [
      PROVIDER,
      providerYaml.replace('openai.chat', 'openai.caht'),
      `${PROVIDER}:5:16: unknown wire "openai.caht"; did you mean "openai.chat"?`,
    ],
    [PROVIDER, providerYaml, 'not refused'],
  ]
  for (const [file, text, said] of rows) {
    write(file, text)
    t.equal(await refusal(manager.reload()), said)
    t.equal(manager.current.version, version)
  }
  t.match(
    results.map(result => result.ok),
    [false, false, false, true, false, true],
  )
  t.match(results[0], { ok: false, error: ConfigError, version, at: Number })
  t.equal(registries.made.length, made, 'no filter of a refused configuration is left')
})

t.test('a start that fails says where', async t => {
  const { manager } = managed({ ...base, [MODELS]: 'models: [' })
  t.match(await refusal(manager.start()), /^config\/models\.d\/acme\.yaml:1:10: /)
})

t.test('CF-08 reloads never overlap', async t => {
  const { manager, registries, results, write } = managed()
  const { version: first } = await manager.start()
  write(GATEWAY, gatewayYaml.replace('rpm: 600', 'rpm: 601'))
  const all = await Promise.all(Array.from({ length: 5 }, () => manager.reload()))
  t.strictSame(
    all.map(({ changed }) => changed),
    [true, false, false, false, false],
  )
  t.strictSame(
    all.map(({ previous }) => previous),
    [first, ...Array(4).fill(manager.current.version)],
  )
  t.equal(results.length, 5)
  t.equal(registries.made.length, 20, 'one snapshot was linked beside the first')
})

t.test('CF-16 only what changed is parsed again, and each parse lets others run', async t => {
  const many = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`providers.d/p${i}.yaml`, providerYaml.replace('acme', `p${i}`)]),
  )
  const folder = mkdtempSync(join(root, 'reload-'))
  const loader = new Loader(writeFiles(folder, { ...base, ...many }), { env })
  let turns = 0
  const count = () => {
    turns++
    turn = setImmediate(count)
  }
  let turn = setImmediate(count)
  const before = await loader.load()
  clearImmediate(turn)
  t.ok(turns >= 22, `${turns} turns of the loop`)

  writeFileSync(join(folder, 'providers.d/p7.yaml'), many['providers.d/p7.yaml']!.replace('Acme AI', 'Other'))
  rmSync(join(folder, 'providers.d/p8.yaml'))
  const after = await loader.load()
  t.not(after.version, before.version)
  const kept = after.providers.filter(file => before.providers.includes(file))
  t.equal(after.providers.length, 20)
  t.equal(kept.length, 19)
  t.equal(after.gateway, before.gateway)
})

t.test('a secret file that changes is a change', async t => {
  const files = {
    ...base,
    [PROVIDER]: providerYaml.replace(/"\$\{ACME_API_KEY\}"/, '"$${file:../secret}"'),
    secret: 'one\n',
  }
  const { folder, manager, write } = managed(files)
  await manager.start()
  t.ok(manager.paths.includes(join(folder, 'secret')), 'and is watched')
  write('secret', 'two\n')
  t.match(await manager.reload(), { changed: true })
  t.equal(manager.current.catalog.providers.get('acme')?.credentials[0]?.secret, 'two')
})

t.test('CF-05 hundreds of reloads keep the heap flat', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { manager, registries, results, write } = managed()
  await manager.start()
  const reload = async (from: number, to: number) => {
    for (let i = from; i < to; i++) {
      write(PROVIDER, providerYaml.replace('Acme AI', `Acme ${i}`))
      await manager.reload()
      registries.made.length = 0
      results.length = 0
    }
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = await reload(0, 50)
  const after = await reload(50, 350)
  t.ok(after - before < 1024 * 1024, `grew by ${after - before} bytes`)
})

/** A manager whose files are watched until the test ends. */
async function watched(t: Test, files: Files = base, folder?: string, waits = { debounceMs: 100 }) {
  const made = managed(files, folder)
  await made.manager.start()
  const close = await watchConfig({
    paths: () => made.manager.paths,
    onChange: () => made.manager.reload().catch(() => undefined),
    onError: thrown => t.fail('the watcher failed', { thrown }),
    ...waits,
  })
  t.teardown(close)
  return made
}
const swapped = (result: ReloadResult) => result.ok && result.changed
const failed = (result: ReloadResult) => !result.ok

t.test('a file that a reload has missed is watched until it is there', async t => {
  const secret = providerYaml.replace(/"\$\{ACME_API_KEY\}"/, '"$${file:../certs/secret}"')
  const certificate = makeAuthority(t).certificate('acme', 'DNS:gateway', 30).cert.toString()
  const certs = { 'certs/secret': 'one\n', 'certs/ca.pem': certificate }
  const { folder, manager, next, write } = await watched(t, { ...base, ...certs, [PROVIDER]: secret })
  const changes: [says: string, path: string, text: string, named?: [path: string, text: string]][] = [
    ['a secret', 'certs/secret', 'two\n'],
    ['a certificate', 'certs/ca.pem', certificate, [GATEWAY, `${gatewayYaml}egress: { ca: ../certs/ca.pem }\n`]],
    ['that of a provider', 'certs/own.pem', certificate, [PROVIDER, `${secret}egress: { ca: ../certs/own.pem }\n`]],
  ]
  for (const [says, path, text, named] of changes) {
    rmSync(join(folder, path), { force: true })
    if (named) write(...named)
    await next(failed)
    write(path, text)
    t.match(await next(swapped), { changed: true }, says)
  }
  t.equal(manager.current.catalog.providers.get('acme')?.credentials[0]?.secret, 'two')
  rmSync(join(folder, 'certs'), { recursive: true })
  await next(failed)
  mkdirSync(join(folder, 'certs'))
  for (const [path, text] of Object.entries({ ...certs, 'certs/own.pem': certificate })) write(path, text)
  await next(swapped)
  t.equal(manager.current.catalog.providers.get('acme')?.credentials[0]?.secret, 'one', 'in a folder of its own')
})

t.test('CF-02, CF-03 each way of saving a file leads to one reload', async t => {
  const { folder, manager, results, next, write } = await watched(t)
  const provider = join(folder, PROVIDER)
  const named = (name: string) => providerYaml.replace('Acme AI', name)
  const nameOf = (id: string) => manager.current.catalog.providers.get(id)?.name
  const renameOver = (text: string) => {
    writeFileSync(`${provider}.tmp`, text)
    renameSync(`${provider}.tmp`, provider)
  }
  const ways: [string, (text: string) => void | Promise<void>][] = [
    ['written in place', text => writeFileSync(provider, text)],
    ['renamed over', renameOver],
    [
      'moved to a backup and made again',
      text => {
        renameSync(provider, `${provider}~`)
        writeFileSync(provider, text)
        rmSync(`${provider}~`)
      },
    ],
    [
      'truncated, then written',
      async text => {
        const witness = watch(provider)
        truncateSync(provider)
        await once(witness, 'change')
        witness.close()
        writeFileSync(provider, text)
      },
    ],
    [
      'written in pieces',
      text => {
        for (let end = 0; end < text.length; end += 100) writeFileSync(provider, text.slice(0, end))
        writeFileSync(provider, text)
      },
    ],
    ['renamed over again', renameOver],
  ]
  for (const [way, save] of ways) {
    await save(named(way))
    await next(swapped)
    t.equal(nameOf('acme'), way, way)
  }

  write('providers.d/new.yaml', providerYaml.replace('provider: acme', 'provider: new'))
  await next(swapped)
  t.equal(nameOf('new'), 'Acme AI', 'a new file')
  rmSync(join(folder, 'providers.d/new.yaml'))
  await next(swapped)
  t.equal(nameOf('new'), undefined, 'a removed file')
  write(MODELS, modelsYaml.replace('Acme Embed', 'Embed'))
  await next(swapped)
  t.equal(manager.current.catalog.models.get('acme-embed')?.name, 'Embed', 'a file of models')

  write('config/notes.txt', 'x')
  write(GATEWAY, `${gatewayYaml}# a comment\n`)
  t.match(await next(() => true), { ok: true, changed: false }, 'a change of nothing')
  write(GATEWAY, gatewayYaml.replace('rpm: 600', 'rpm: 601'))
  await next(swapped)
  t.equal(results.filter(swapped).length, ways.length + 4)
  t.equal(results.filter(failed).length, 0)
})

t.test('CF-02 a file that stays empty is reported after a second wait, and the old configuration stays', async t => {
  // Nobody else waits for so long.
  const debounceMs = 101
  let passed = 0
  const { setTimeout } = globalThis
  t.intercept(globalThis, 'setTimeout', {
    value: (then: () => void, ms?: number) =>
      setTimeout(() => {
        if (ms === debounceMs) passed++
        then()
      }, ms),
  })
  const waits = { debounceMs, maxWaitMs: 600_000 }
  const { folder, manager, results, next, write } = await watched(t, base, undefined, waits)
  t.match(await next(() => true), { changed: false }, 'what changed until it was watched')
  const { version } = manager.current
  passed = 0
  truncateSync(join(folder, PROVIDER))
  t.match(await next(failed), { ok: false, error: { message: 'the file is empty' } })
  t.ok(passed >= 2, `${passed} waits`)
  t.equal(manager.current.version, version)
  write(PROVIDER, providerYaml.replace('Acme AI', 'Acme'))
  await next(swapped)
  t.equal(results.filter(failed).length, 1)
})

t.test('CF-03 a link that is swapped, as Kubernetes does, leads to one reload', async t => {
  const folder = mkdtempSync(join(root, 'links-'))
  const swap = (at: string, version: string, by: string) => {
    symlinkSync(`..${version}`, join(folder, at, by))
    renameSync(join(folder, at, by), join(folder, at, '..data'))
  }
  const mount = (at: string, version: string, files: Files) => {
    const data = join(folder, at, `..${version}`)
    mkdirSync(data, { recursive: true })
    for (const [name, text] of Object.entries(files)) writeFileSync(join(data, name), text)
    swap(at, version, '..data_tmp')
  }
  mount('config', 'v1', { 'gateway.yaml': gatewayYaml })
  mount('providers.d', 'v1', { 'acme.yaml': providerYaml })
  symlinkSync('..data/gateway.yaml', join(folder, GATEWAY))
  symlinkSync('..data/acme.yaml', join(folder, PROVIDER))
  const { manager, results, next } = await watched(
    t,
    { [GATEWAY]: gatewayYaml, [MODELS]: modelsYaml, [PROVIDER]: providerYaml },
    folder,
  )

  for (const version of ['v2', 'v3']) {
    mount('providers.d', version, { 'acme.yaml': providerYaml.replace('Acme AI', version) })
    await next(swapped)
    t.equal(manager.current.catalog.providers.get('acme')?.name, version)
  }
  swap('providers.d', 'v1', 'back')
  await next(swapped)
  t.equal(manager.current.catalog.providers.get('acme')?.name, 'Acme AI', 'back to a folder that is there')
  for (const [index, version] of ['v2', 'v3'].entries()) {
    mount('config', version, { 'gateway.yaml': gatewayYaml.replace('rpm: 600', `rpm: ${index + 1}`) })
    await next(swapped)
    t.strictSame(manager.current.files.gateway.value.chains.inference?.[2], { ratelimit: { rpm: index + 1 } })
  }
  t.equal(results.filter(swapped).length, 5)
  t.equal(results.filter(failed).length, 0)
})

t.test('a link on the way to the files, or behind one, that is switched leads to a reload', async t => {
  const folder = mkdtempSync(join(root, 'releases-'))
  const release = (name: string) => {
    writeFiles(join(folder, name), { ...base, [PROVIDER]: providerYaml.replace('Acme AI', name) })
    symlinkSync(name, join(folder, 'next'))
    renameSync(join(folder, 'next'), join(folder, 'current'))
  }
  release('one')
  symlinkSync('current', join(folder, 'here'))
  const { manager, next } = await watched(t, {}, join(folder, 'here'))
  for (const name of ['two', 'three']) {
    release(name)
    await next(swapped)
    t.equal(manager.current.catalog.providers.get('acme')?.name, name)
  }
})

t.test('a folder that the configuration begins to name is watched from then on', async t => {
  const { folder, manager, next, write } = await watched(t)
  mkdirSync(join(folder, 'others.d'))
  write('others.d/acme.yaml', providerYaml)
  write(GATEWAY, gatewayYaml.replace('../providers.d', '../others.d').replace('rpm: 600', 'rpm: 601'))
  await next(swapped)
  t.ok(manager.paths.includes(join(folder, 'others.d')))
  write('others.d/acme.yaml', providerYaml.replace('Acme AI', 'Other'))
  await next(swapped)
  t.equal(manager.current.catalog.providers.get('acme')?.name, 'Other')
})

t.test('a watch that is closed says nothing more', async t => {
  const path = writeFiles(mkdtempSync(join(root, 'closed-')), base)
  const signal = new EventEmitter()
  const begin = (name: string, debounceMs: number) =>
    watchConfig({
      paths: () => [path],
      onChange: () => signal.emit(name),
      onError: thrown => t.fail('the watcher failed', { thrown }),
      debounceMs,
    })
  const [closing, lasting] = [await begin('closing', 1), await begin('lasting', 50)]
  await once(signal, 'lasting')
  await closing()
  signal.once('closing', () => t.fail('it was closed'))
  utimesSync(path, 1, 1)
  await once(signal, 'lasting')
  await lasting()
})

t.test('a reload that takes the credential of a provider warns with file, line and variable', async t => {
  const { manager, results, write } = managed()
  await manager.start()
  const line = (name: string, meant = '') =>
    `${PROVIDER}:${at}: the provider "acme" has no credential, because the environment variable "${name}" is not set${meant}`
  const offset = providerYaml.indexOf(KEY)
  const before = providerYaml.slice(0, offset).split('\n')
  const at = `${before.length}:${before.at(-1)!.length + 1}`
  write(PROVIDER, providerYaml.replace('ACME_API_KEY', 'OPENAI_API_KEY'))
  t.strictSame((await manager.reload()).warnings, [line('OPENAI_API_KEY')], 'it was live')
  t.strictSame((await manager.reload()).warnings, [], 'it may be unset from then on')
  write(PROVIDER, providerYaml.replace('ACME_API_KEY', 'ACME_API_KYE'))
  const misspelled = [line('ACME_API_KYE', '; did you mean "ACME_API_KEY"?')]
  t.strictSame((await manager.reload()).warnings, misspelled)
  t.match(results.at(-1), { ok: true, warnings: misspelled })
  t.strictSame((await manager.reload()).warnings, misspelled, 'it does not become right with time')
  write(PROVIDER, providerYaml.replace('ACME_API_KEY', 'ACME_API_KYE:-'))
  t.strictSame((await manager.reload()).warnings, misspelled, 'a default that is empty is no credential')
  write(PROVIDER, providerYaml.replace('ACME_API_KEY', 'BLANK'))
  t.strictSame((await manager.reload()).warnings, [line('BLANK').replace('not set', 'empty')])
  write(PROVIDER, `enabled: false\n${providerYaml.replace('ACME_API_KEY', 'ACME_API_KYE')}`)
  t.strictSame((await manager.reload()).warnings, [], 'a provider that is off needs no credential')
  write(PROVIDER, providerYaml)
  t.strictSame((await manager.reload()).warnings, [])
})

t.test('a misspelled variable of an address that has a default is warned of', async t => {
  const { manager, write } = managed()
  await manager.start()
  const address = (name: string) => providerYaml.replace('api.acme', `\${${name}:-api.acme}`)
  const warnings = async (name: string) => {
    write(PROVIDER, address(name))
    return (await manager.reload()).warnings
  }
  t.strictSame(await warnings('ACME_HOST'), [], 'a default may be meant')
  t.match(await warnings('DRIAN'), [
    /^providers.d.acme.yaml:3:11: the environment variable "DRIAN" is not set; did you mean "DRAIN"\?$/,
  ])
  write(
    GATEWAY,
    gatewayYaml.replace('30s', () => `"${ref('DRAIN')}"`),
  )
  t.strictSame(await warnings('DRIAN'), [], 'the similar name is read by gateway.yaml')
})
