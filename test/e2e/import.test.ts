/** What `gatewayctl import litellm` writes, served: every name of every fixture answers at its endpoint. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { run } from '../../src/cli/program.ts'
import { SILENCE, startAnyProvider } from '../helpers/any-provider.ts'
import { startGateway } from '../helpers/gateway.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/litellm', import.meta.url))
const { origin, account } = await startAnyProvider(t)

interface Imported {
  readonly set: readonly { readonly name: string; readonly value: string }[]
  readonly keys: readonly { readonly key: string; readonly fate: string }[]
}

/** Every name that a client of the old gateway may call. A name with a star stands for one that fits it. */
function namesOf(file: string, { keys }: Imported): string[] {
  const { model_list, router_settings } = parse(readFileSync(file, 'utf8'), { merge: true })
  const isCarried = (key: string) => keys.find(one => one.key === key)?.fate === 'carried'
  const names = (model_list as { model_name: string }[])
    .filter((_, index) => isCarried(`model_list[${index}].model_name`))
    .map(({ model_name: name }) =>
      name === '*' ? 'gpt-4o-mini' : name.replace('*', name.startsWith('claude') ? 'sonnet-4-5' : 'some-model'),
    )
  const aliases = Object.keys(router_settings?.model_group_alias ?? {}).filter(alias =>
    keys.some(({ key, fate }) => key.startsWith(`router_settings.model_group_alias.${alias}`) && fate === 'carried'),
  )
  return [...new Set([...names, ...aliases])]
}

const form = (model: string) => {
  const body = new FormData()
  body.set('model', model)
  body.set('file', new Blob([SILENCE]), 'silence.wav')
  return body
}
const REQUESTS: Record<string, (model: string) => readonly [path: string, body: object]> = {
  chat: model => ['chat/completions', { model, messages: [{ role: 'user', content: 'Who answers?' }] }],
  embeddings: model => ['embeddings', { model, input: 'text' }],
  images: model => ['images/generations', { model, prompt: 'a dot' }],
  speech: model => ['audio/speech', { model, input: 'text', voice: 'alloy', response_format: 'wav' }],
  transcriptions: model => ['audio/transcriptions', form(model)],
  rerank: model => ['rerank', { model, query: 'a', documents: ['a'] }],
  moderations: model => ['moderations', { model, input: 'text' }],
}

const gateway = await startGateway(t, {
  providers: { none: { base_url: `${origin}/v1` } },
  env: { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'secret' },
  config: { catalog: { routes: './routes.d' } },
  files: {
    '.aws/credentials': '[dev]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = secret\n',
    'config/routes.d/none.yaml': 'virtual_models: []\n',
  },
})

for (const name of readdirSync(FIXTURES).filter(one => one !== 'odd.yaml')) {
  t.test(`every name of ${name} answers`, async t => {
    const file = join(FIXTURES, name)
    const out = join(t.testdir({}), 'new')
    let printed = ''
    const print = (text: unknown) => {
      printed += String(text)
    }
    await run(['import', 'litellm', file, '--out', out, '--json'], { env: {}, cwd: out, out: print, err: print })
    const imported = JSON.parse(printed) as Imported
    for (const folder of ['providers.d', 'config/models.d', 'config/routes.d']) {
      const [from, to] = [join(out, folder), join(gateway.dir, folder)]
      for (const one of readdirSync(to)) rmSync(join(to, one))
      for (const one of readdirSync(from)) {
        const text = readFileSync(join(from, one), 'utf8')
        writeFileSync(join(to, one), folder === 'providers.d' ? here(text, imported) : text)
      }
    }
    const reloaded = await gateway.admin('POST', '/reload')
    t.equal(reloaded.status, 200, await reloaded.text())
    const names = namesOf(file, imported)
    const listed = (await (await gateway.get('/v1/models')).json()) as { data: { id: string; operations: string[] }[] }
    const inner = (name: string) => !names.includes(name) && /\.(?:own|\d)$|\*/.test(name)
    t.strictSame(listed.data.map(({ id }) => id).filter(inner), [])
    for (const model of names) {
      const shown = (await (await gateway.get(`/v1/models/${encodeURIComponent(model)}`)).json()) as {
        operations?: string[]
      }
      const operation = shown.operations?.find(one => one in REQUESTS) ?? 'chat'
      const [path, body] = REQUESTS[operation]!(model)
      const answered =
        body instanceof FormData
          ? await fetch(`${gateway.url}/v1/${path}`, {
              method: 'POST',
              headers: { authorization: `Bearer ${gateway.key}` },
              body,
            })
          : await gateway.post(`/v1/${path}`, body)
      const text = await answered.text()
      t.equal(answered.status, 200, `${model} at ${path}: ${answered.status === 200 ? '' : text}`)
      const used = /"used_model":"([^"]*)"/.exec(text)?.[1]
      t.notOk(used !== undefined && inner(used), `${model} was answered by ${used}`)
    }
  })
}

/** A manifest at the provider of this test, with a value for each variable. */
function here(text: string, { set }: Imported): string {
  const manifest = parse(text) as { provider: string; base_url: string }
  const base = manifest.base_url.replace(
    /^(?:https?:\/\/(?:\$\{[^}]*\}|[^/])*|\$\{[^}]*\})/,
    `${origin}/${manifest.provider}`,
  )
  let replaced = JSON.stringify({ ...manifest, base_url: base })
  for (const { name, value } of set) {
    const secret = /JSON/.test(value) ? account : /ACCESS_KEY_ID/.test(name) ? 'AKIAEXAMPLE' : 'us-east-1'
    replaced = replaced.replaceAll(new RegExp(`\\$\\{${name}(?::-[^}]*)?\\}`, 'g'), () =>
      JSON.stringify(secret).slice(1, -1),
    )
  }
  return replaced
}
