/** What rules leave of operations that only those of providers, compliance and a session's scope apply to. */
import t from 'tap'
import type { RuleType, RuleValue } from '../../src/core/policy.ts'
import { noDemands } from '../../src/policy/compliance.ts'
import { accessOf } from '../../src/policy/rules.ts'
import { access, offer, rule } from './kit.ts'

const priced = () => offer({ provider: 'acme', model: 'large', price: ['5', '5'] })

t.test('rules of models and prices deny nothing there, those of providers do, on every level', async t => {
  const rows: [type: RuleType, value: RuleValue, denied: boolean][] = [
    ['deny_models', { models: ['large'] }, false],
    ['allow_models', { models: ['other'] }, false],
    ['deny_pricing', { pricing: 'paid' }, false],
    ['allow_pricing', { maxInputPrice: '1' }, false],
    ['deny_providers', { providers: ['acme'] }, true],
    ['allow_providers', { providers: ['best'] }, true],
    ['allow_providers', { providers: ['acme'] }, false],
  ]
  for (const [type, value, denied] of rows) {
    for (const level of ['rules', 'memberRules', 'keyRules'] as const) {
      const issue = access({ [level]: [rule(type, value)] }).providerIssue(priced())
      t.equal(issue?.by, denied ? 'rules' : undefined, `${type} ${JSON.stringify(value)} in ${level}`)
    }
  }
  const compliance = { ...noDemands, blockedModels: ['large'] }
  t.equal(access({ compliance }).providerIssue(priced())?.by, 'compliance')
})

t.test('the scope of a session holds for every operation', async t => {
  const scope = (model: string) => ({
    whose: 'the session' as const,
    rules: [rule('allow_models', { models: [model] })],
  })
  const issueUnder = (model: string) =>
    accessOf({ id: 'a', levels: [scope(model)], compliance: undefined }).providerIssue(priced())
  t.equal(issueUnder('large'), undefined)
  t.equal(issueUnder('other')?.by, 'rules')
})
