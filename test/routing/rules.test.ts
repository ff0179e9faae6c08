import t from 'tap'
import type { Catalog, RouteRule } from '../../src/core/catalog.ts'
import { isFrom } from '../../src/routing/conditions.ts'
import { ruleFor } from '../../src/routing/rules.ts'
import { principal } from '../core/kit.ts'
import { random } from '../helpers/random.ts'
import { catalogOf, provider } from './kit.ts'

type Match = RouteRule['match']

const acme = provider('acme')
const { models, providers } = catalogOf({ 'gpt-4o': { offers: [[acme]] }, 'gpt-4o-mini': { offers: [[acme]] } })
const aliases = new Map([['best', models.get('gpt-4o')!]])

const ruled = (...matches: Match[]): Catalog => ({
  ...{ models, aliases, providers },
  rules: matches.map((match, at) => ({ name: `rule ${at + 1}`, match, use: 'other', deny: undefined })),
})
const asking = (catalog: Catalog, tags: Record<string, string> = {}, more: object = {}) => ({
  catalog,
  principal: { ...principal, ...more },
  asker: undefined,
  tags: new Map(Object.entries(tags)),
})

/** The match of a rule, a name, and whether they fit. */
const names: readonly (readonly [match: string | undefined, name: string, fits: boolean])[] = [
  [undefined, 'anything', true],
  ['gpt-4o', 'gpt-4o', true],
  ['gpt-4o', 'gpt-4o-mini', false],
  ['gpt-4o*', 'gpt-4o-mini', true],
  ['gpt-4o*', 'gpt-4o', true],
  ['*mini', 'gpt-4o-mini', true],
  ['*4o*', 'gpt-4o-mini', true],
  ['gpt-4?', 'gpt-4o', true],
  ['gpt-4?', 'gpt-4', false],
  ['*a*b*c', 'xaxbxbxc', true],
  ['*a*b*c', 'xaxbxcx', false],
  ['gpt-4o', 'best', true],
  ['best', 'best', true],
  ['best', 'gpt-4o', false],
  ['gpt-4o', 'acme/gpt-4o', true],
  ['acme/*', 'acme/gpt-4o', true],
  ['acme/*', 'gpt-4o', false],
  ['unknown-*', 'unknown-1', true],
  ['gpt.4o', 'gpt-4o', false],
]

t.test('a rule matches a name, a pattern, and the model behind an alias or a provider', async t => {
  for (const [model, name, fits] of names) {
    const rule = ruleFor(name, asking(ruled({ model })))
    t.equal(rule !== undefined, fits, `${model} ${fits ? 'fits' : 'does not fit'} ${name}`)
  }
})

t.test('a rule without a caller in its match is for all, the others for whom they name', async t => {
  const catalog = ruled(
    { orgs: ['org-a'] },
    { projects: ['project-a'] },
    { keys: ['key-a'] },
    { tags: { team: ['red', 'blue'] } },
    { model: 'gpt-4o' },
  )
  const found = (more: object, tags = {}) => ruleFor('gpt-4o', asking(catalog, tags, more))?.name
  t.equal(found({ orgId: 'org-a' }), 'rule 1')
  t.equal(found({ orgName: 'org-a' }), 'rule 1')
  t.equal(found({ projectId: 'project-a' }), 'rule 2')
  t.equal(found({ keyId: 'key-a' }), 'rule 3')
  t.equal(found({ keyName: 'key-a' }), 'rule 3')
  t.equal(found({}, { team: 'blue' }), 'rule 4')
  t.equal(found({}, { team: 'green' }), 'rule 5')
  t.equal(ruleFor('gpt-4o-mini', asking(catalog)), undefined)
})

t.test('the first rule in order applies, whatever is remembered of names and callers', async t => {
  const chance = random(11)
  const different: string[] = []
  const one = <T>(...of: T[]): T => of[Math.floor(chance() * of.length)]!
  for (let round = 0; round < 50; round++) {
    const catalog = ruled(
      ...Array.from({ length: 1 + Math.floor(chance() * 30) }, () => ({
        model: one(undefined, 'a', 'b', 'a*', '*b', '?'),
        orgs: one<string[] | undefined>(undefined, ['1'], ['2']),
        projects: one<string[] | undefined>(undefined, undefined, ['1'], ['2']),
        keys: one<string[] | undefined>(undefined, undefined, ['1'], ['1', '2']),
        tags: one<Match['tags']>(undefined, undefined, { x: '1' }, { x: ['1', '2'], y: '1' }),
      })),
    )
    for (let asked = 0; asked < 100; asked++) {
      const name = one('a', 'b', 'ab', 'c')
      const caller = { orgId: one('1', '2', '3'), projectId: one('1', '2'), keyId: one('1', '2') }
      const query = asking(catalog, { x: one('1', '2', '3'), y: one('1', '2') }, caller)
      const fits = ({ match: { model, ...others } }: RouteRule) =>
        (model === undefined || new RegExp(`^${model.replace('*', '.*').replace('?', '.')}$`).test(name)) &&
        isFrom(others, query)
      const wanted = catalog.rules!.find(fits)?.name
      const got = ruleFor(name, query)?.name
      if (got !== wanted) different.push(`${name} by ${JSON.stringify(caller)}: ${got}, not ${wanted}`)
    }
  }
  t.strictSame(different, [])
})
