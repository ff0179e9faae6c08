/** Virtual models in the files of `routes.d`. */
import t from 'tap'
import { GATEWAY, gatewayYaml, loadIn, refusal } from './kit.ts'

const load = loadIn(t.testdir())
const routed = (yaml: string) =>
  load({
    [GATEWAY]: gatewayYaml.replace('catalog: {', 'catalog: { routes: ./routes.d,'),
    'config/routes.d/own.yaml': `virtual_models:\n${yaml}`,
  })

t.test('strings stand for models, and what is left out has its default', async t => {
  const { catalog } = await routed('  - { id: house, use: [acme/acme-large, { model: acme-l, weight: 3 }] }\n')
  const use = [
    { model: 'acme/acme-large', weight: 1, when: undefined },
    { model: 'acme-l', weight: 3, when: undefined },
  ]
  t.strictSame([...catalog.virtual!.values()], [{ id: 'house', name: 'house', strategy: 'order', sticky: false, use }])
})

t.test('without routes there are no virtual models', async t => {
  t.equal((await load({})).catalog.virtual, undefined)
})

t.test('a hidden model leaves its name to a virtual model', async t => {
  const { catalog } = await routed('  - { id: acme/hid, use: [acme-large] }\n  - { id: "any/*", use: [acme-l] }\n')
  t.equal(catalog.virtual!.get('acme/hid')?.hidden, undefined)
  t.equal(catalog.virtual!.get('any/*')?.hidden, true)
  const files = {
    [GATEWAY]: gatewayYaml.replace('catalog: {', 'catalog: { routes: ./routes.d,'),
    'config/routes.d/own.yaml': 'virtual_models: [{ id: chat/One model, use: [acme-large] }]\n',
    'config/models.d/hidden.yaml':
      'models: [{ id: chat/One model, name: One, family: own, hidden: true, input: [text], output: [text] }]\n',
  }
  const both = (await load(files)).catalog
  t.equal(both.models.get('chat/One model')?.hidden, true)
  t.ok(both.virtual!.has('chat/One model'))
})

const refused: readonly (readonly [yaml: string, said: string])[] = [
  ['  - { id: x, use: [acme-larg] }', '2:20: unknown model "acme-larg"; did you mean "acme-large"?'],
  ['  - { id: x, use: [acm/acme-large] }', '2:20: unknown provider "acm"; did you mean "acme"?'],
  ['  - { id: acme-l, use: [acme-large] }', '2:11: "acme-l" already names a model; choose another id'],
  ['  - { id: auto, use: [acme-large] }', '2:11: "auto" is reserved; choose another id'],
  ['  - { id: "a*b*", use: [acme-large] }', '2:11: expected one "*" at most'],
  ['  - { id: x, use: [x] }', '2:20: "x" uses "x": remove one of these targets'],
  [
    '  - { id: x, use: [acme-large, y] }\n  - { id: y, use: [x] }',
    '3:20: "x" uses "y" uses "x": remove one of these targets',
  ],
  [
    '  - { id: x, use: [acme-large] }\n  - { id: x, use: [acme-l] }',
    '3:11: the virtual model "x" is defined twice; keep one',
  ],
  [
    '  - { id: x, use: [acme-large], defaults: { temprature: 1 } }',
    '2:45: unknown field "temprature"; did you mean "temperature"?',
  ],
  ['  - { id: x, use: [acme-large], overrides: { temperature: hot } }', '2:59: temperature: must be number or null'],
  [
    '  - { id: x, use: [acme-large], defaults: { tools: [{ type: function }] } }',
    '2:53: tools[0].function: is required',
  ],
  [
    '  - { id: x, use: [{ model: acme-large, when: { prompt_tokens: { min: 9, max: 5 } } }] }',
    '2:79: expected no less than "min"',
  ],
  ['  - { id: x, use: [acme-large], overrides: { model: other } }', '2:46: only clients set "model"; leave it out'],
  ['  - { id: x, use: [acme-large], defaults: { seed: x } }', '2:51: seed: has a value of a wrong type'],
]
for (const [yaml, said] of refused) {
  t.test(`a file is refused: ${said}`, async t => {
    t.equal(await refusal(routed(`${yaml}\n`)), `config/routes.d/own.yaml:${said}`)
  })
}

const ruled: readonly (readonly [yaml: string, said: string])[] = [
  ['{ match: { model: "a*" }, use: acme-larg }', '4:36: unknown model "acme-larg"; did you mean "acme-large"?'],
  ['{ match: { model: "a*" } }', '4:5: write one of "use", "deny" and "mirror", or "use" beside "mirror"'],
  [
    '{ match: {}, mirror: { to: acme-large }, deny: No }',
    '4:5: write one of "use", "deny" and "mirror", or "use" beside "mirror"',
  ],
  ['{ match: {}, mirror: { to: acme-larg } }', '4:32: unknown model "acme-larg"; did you mean "acme-large"?'],
  ['{ match: {}, mirror: { to: acme-large, percent: 101 } }', '4:53: expected a number of at most 100, got 101'],
  [
    '{ match: {}, use: acme-large, deny: No }',
    '4:5: write one of "use", "deny" and "mirror", or "use" beside "mirror"',
  ],
]
for (const [yaml, said] of ruled) {
  t.test(`a rule is refused: ${said}`, async t => {
    t.equal(await refusal(routed(`  []\nrules:\n  - ${yaml}\n`)), `config/routes.d/own.yaml:${said}`)
  })
}
