/** An operator's own modules: a wire and a filter, loaded at start and when they appear, never silently replaced. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Child } from '../helpers/child.ts'
import { timing } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { root } from '../helpers/sources.ts'
import { startUpstream } from '../helpers/upstream.ts'

const FILTER = `
export const plugin = {
  filters: [{
    name: 'stamp',
    options: { json: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] } },
    create: ({ word }) => ({
      async handle(_ex, next) {
        const reply = await next()
        reply.headers.push('x-stamp', word)
        return reply
      },
    }),
  }],
}
`
/** A wire that says everything in capitals, around the shipped one that the façade does not export. */
const WIRE = `
export const plugin = {
  wires: [{
    op: 'chat',
    wire: 'acme.shout',
    encode: (request, target, stream) => ({
      path: '/chat/completions',
      body: { model: target.mapping.externalId, messages: request.messages, stream },
    }),
    decoder: () => ({
      done: false,
      frame({ data }) {
        this.done = true
        const { choices, usage } = JSON.parse(data)
        return [
          { type: 'text', choice: 0, text: choices[0].message.content.toUpperCase() },
          { type: 'usage', usage: { prompt: usage.prompt_tokens, completion: usage.completion_tokens } },
          { type: 'finish', choice: 0, reason: 'stop' },
        ]
      },
      end: () => [],
    }),
    error: () => new Error('no error is expected'),
  }],
}
`

const upstream = await startUpstream(t)
await upstream.script('a', [{ text: 'hello' }])
const gateway = await startGateway(t, {
  providers: { a: { base_url: upstream.url('a') } },
  config: { catalog: { plugins: '../my-plugins' } },
  files: { 'my-plugins/stamp.mjs': FILTER, 'my-plugins/notes.txt': 'no module' },
  chains: {
    inference: ['auth', 'ratelimit', { stamp: { word: 'one' } }, 'route', 'translate', 'billing', 'telemetry'],
    local: ['auth', 'ratelimit'],
  },
})
const said = async () => {
  const answer = await gateway.chat({ model: 'test', messages: [{ role: 'user', content: 'Hi' }] })
  const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] }
  return [answer.headers.get('x-stamp'), choices[0]?.message.content]
}
const reload = async () => (await (await gateway.admin('POST', '/reload')).json()) as { restartNeeded?: string[] }

t.test('a filter of the operator runs where the chain names it', async t => {
  t.strictSame(await said(), ['one', 'hello'])
})

t.test('a module that appears is loaded by the next reload, and its wire may be named', async t => {
  await gateway.writeFile('my-plugins/shout.mjs', WIRE)
  await gateway.writeProvider('a', { base_url: upstream.url('a'), wires: { chat: 'acme.shout' } })
  t.match(await reload(), { restartNeeded: [] })
  t.strictSame(await said(), ['one', 'HELLO'])
})

t.test('a module that has changed is reported, and the loaded one goes on', async t => {
  await gateway.writeFile('my-plugins/stamp.mjs', FILTER.replace("'x-stamp', word", "'x-stamp', 'two'"))
  t.strictSame((await reload()).restartNeeded, [join(gateway.dir, 'my-plugins/stamp.mjs')])
  t.strictSame(await said(), ['one', 'HELLO'])
  await gateway.restart()
  t.strictSame((await reload()).restartNeeded, [])
  t.strictSame(await said(), ['two', 'HELLO'])
})

/** Throws what only the gateway's own class of errors makes of it: a status of this filter's choice. */
const TEAPOT = `
import { GatewayError, s } from 'model-gateway/plugin'

export const plugin = {
  filters: [{
    name: 'teapot',
    options: s.object({ word: s.string() }),
    create: ({ word }) => ({
      handle(ex, next) {
        if (!ex.header('x-tea')) return next()
        throw new GatewayError({ status: 418, type: 'invalid_request_error', code: 'teapot', message: word })
      },
    }),
  }],
}
`
t.test('the filter that docs/extending.md prints refuses a chat that holds a word', async t => {
  const page = await readFile(join(root, 'docs/extending.md'), 'utf8')
  const [, code] = /```js\n(\/\/ my-plugins\/guard\.mjs\n[\s\S]+?)```/.exec(page)!
  const guarded = await startGateway(t, {
    providers: { a: { base_url: upstream.url('a') } },
    config: { catalog: { plugins: '../my-plugins' } },
    files: { 'my-plugins/guard.mjs': code! },
    chains: {
      inference: [
        'auth',
        'ratelimit',
        { guard: { words: ['classified'] } },
        'cache',
        'route',
        'translate',
        'billing',
        'telemetry',
      ],
      local: ['auth', 'ratelimit'],
    },
  })
  t.equal((await guarded.chat('Hello')).status, 200)
  const refused = await guarded.chat('This is classified.')
  t.match([refused.status, await refused.json()], [400, { error: { code: 'content_filter', message: /"classified"/ } }])
})

for (const workers of [1, 2]) {
  t.test(`workers: ${workers}: a module in a folder of its own imports what the gateway itself uses`, async t => {
    const inference = ['auth', 'ratelimit', 'route', 'translate', 'billing', 'telemetry']
    const gateway = await startGateway(t, {
      providers: { a: { base_url: upstream.url('a') } },
      config: { server: { workers }, catalog: { plugins: '../my-plugins' } },
      files: { 'my-plugins/teapot.js': TEAPOT },
      chains: { inference: [{ teapot: { word: 'short' } }, ...inference], local: ['auth', 'ratelimit'] },
    })
    const told = async () => {
      const response = await gateway.chat('Hi', { 'x-tea': 'yes' })
      return [response.status, ((await response.json()) as { error: { message: string } }).error.message]
    }
    t.strictSame(await told(), [418, 'short'])
    await gateway.writeFile('my-plugins/later.mjs', TEAPOT.replace("'teapot'", "'later'"))
    t.match(await (await gateway.admin('POST', '/reload')).json(), { restartNeeded: [] })
    const settings = await readFile(gateway.configPath, 'utf8')
    await gateway.writeFile('config/gateway.yaml', settings.replace('teapot:', 'later:').replace('short', 'stout'))
    t.equal((await gateway.admin('POST', '/reload')).status, 200)
    t.strictSame(await told(), [418, 'stout'], 'one that appeared later does so too')
  })
}

t.test('CF-07 a module that cannot be loaded is refused by name, and what ran goes on', async t => {
  for (const [name, text, why] of [
    ['broken.mjs', 'export const plugin = {', /broken\.mjs: the plugin cannot be loaded/],
    ['empty.mjs', 'export const x = 1', /empty\.mjs: a plugin must export "plugin"/],
    [
      'unknown.mjs',
      WIRE.replace("op: 'chat'", "op: 'chats'").replace('acme.shout', 'acme.whisper'),
      /unknown\.mjs: the wire "acme\.whisper" has an unknown operation "chats"; did you mean "chat"/,
    ],
    [
      'nameless.mjs',
      'export const plugin = { wires: [{ op: "chat" }] }',
      /nameless\.mjs: a wire has no name; set "wire"/,
    ],
    ['twice.mjs', WIRE, /twice\.mjs: the wire "acme\.shout" already exists/],
    ['throws.mjs', 'throw new Error("no luck")', /throws\.mjs: the plugin cannot be loaded: no luck/],
    ['rejects.mjs', 'await Promise.reject(new Error("no luck"))', /rejects\.mjs: the plugin cannot be loaded: no luck/],
    ['hangs.mjs', 'await new Promise(() => {})', /hangs\.mjs: the plugin cannot be loaded: it did not load within 5 s/],
  ] as const) {
    await gateway.writeFile(`my-plugins/${name}`, text)
    const start = performance.now()
    const refused = await gateway.admin('POST', '/reload')
    const value = performance.now() - start
    timing(t, { id: 'CF-07', what: `${name} is refused after`, value, unit: 'ms', atMost: 8000 })
    t.not(refused.status, 200)
    t.match(((await refused.json()) as { error: { message: string } }).error.message, why)
    t.strictSame(await said(), ['two', 'HELLO'])
    await gateway.writeFile(`my-plugins/${name}`, 'export const plugin = {}\n')
    t.match(await reload(), { restartNeeded: [] }, 'mended, it is loaded')
  }
})

t.test('commands that read the files run modules with --plugins alone', async t => {
  const list = JSON.stringify({ 'a-model': { litellm_provider: 'openai', mode: 'chat', input_cost_per_token: 1e-6 } })
  await gateway.writeFile('list.json', list)
  for (const command of [['check'], ['doctor'], ['models', 'check'], ['models', 'sync', '--from', 'list.json']]) {
    const told = async (...more: string[]) => {
      const args = [...command, '--config', gateway.configPath, ...more]
      const ctl = new Child(join(import.meta.dirname, '../../bin/gatewayctl.js'), args, {
        ...{ cwd: gateway.dir, stdio: ['ignore', 'pipe', 'pipe'] },
      })
      return { code: await ctl.exited, text: ctl.stdout + ctl.stderr }
    }
    t.match(await told(), { code: 1, text: /unknown (?:wire|filter) .*run the plugins with --plugins/ }, command[0]!)
    const ran = await told('--plugins')
    t.equal(ran.code, 0, `${command.join(' ')}: ${ran.text}`)
  }
})

t.test('CF-07 a check says where a folder of modules is named that does not exist', async t => {
  const settings = await readFile(gateway.configPath, 'utf8')
  await gateway.writeFile('config/other.yaml', settings.replace('../my-plugins', '../no-plugins'))
  const args = ['check', '--config', join(gateway.dir, 'config/other.yaml')]
  const ctl = new Child(join(import.meta.dirname, '../../bin/gatewayctl.js'), args, {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.equal(await ctl.exited, 1)
  t.match(ctl.stderr, /config\/other\.yaml:\d+:\d+: ENOENT/)
})

t.test('CF-07 a filter that cannot be made is refused where it stands, and what ran goes on', async t => {
  const settings = await readFile(gateway.configPath, 'utf8')
  const filter = FILTER.replace("'stamp'", "'thrower'").replace(
    'create: ({ word }) => ({',
    'create: () => { throw new Error("no luck") }, x: () => ({',
  )
  await gateway.writeFile('my-plugins/thrower.mjs', filter)
  t.match(await reload(), { restartNeeded: [] })
  await gateway.writeFile('config/gateway.yaml', settings.replace('- stamp:', '- thrower:'))
  const refused = await gateway.admin('POST', '/reload')
  t.equal(refused.status, 400)
  const { error } = (await refused.json()) as { error: { message: string } }
  t.match(error.message, /^config\/gateway\.yaml:\d+:\d+: filter "thrower" cannot be created: no luck$/)
  t.strictSame(await said(), ['two', 'HELLO'])
  await gateway.writeFile('config/gateway.yaml', settings)
  t.equal((await gateway.admin('POST', '/reload')).status, 200)
})
