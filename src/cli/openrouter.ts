/** Converts a request or a preset of OpenRouter, with `models` and `provider` preferences, to files of ours. */
import type { Converted } from './litellm/convert.ts'
import { Catalogue, contentsOf } from './litellm/manifests.ts'
import { unpricedNote } from './litellm/models.ts'
import { defaultsOf, SAMPLED } from './litellm/params.ts'
import { upstreamOf } from './litellm/providers.ts'
import { Report } from './litellm/report.ts'
import { listOf, type Section, sectionOf, textOf } from './litellm/sections.ts'
import { Variables } from './litellm/variables.ts'

/** Fields that each request brings with it. */
const OF_REQUEST = ['messages', 'prompt', 'stream', 'user', 'tools', 'tool_choice', 'session_id', 'usage']

/** Reads `input`, the parsed JSON; `name` becomes the model that clients call. */
export async function convertOpenrouter(input: Section, name: string): Promise<Converted> {
  const report = new Report()
  const variables = new Variables()
  const catalogue = new Catalogue(variables, new Set([name]))
  const isInner = Object.keys(sectionOf(input.config)).length > 0
  const preset = isInner ? sectionOf(input.config) : input
  const own = isInner ? report.below('config') : report
  const models = [...new Set([preset.model, ...listOf(preset.models)].map(textOf).filter(one => one !== undefined))]
  const preferences = sectionOf(preset.provider)
  const extra_body = {
    ...(Object.keys(preferences).length > 0 && { provider: preferences }),
    ...(Array.isArray(preset.transforms) && { transforms: preset.transforms }),
  }
  const body = Object.keys(extra_body).length > 0 ? { extra_body } : {}
  const { effort, max_tokens: budget } = sectionOf(preset.reasoning)
  const thinking = {
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(budget !== undefined && { thinking: { type: 'enabled', budget_tokens: budget } }),
  }
  own.carried(['model', 'models'], 'targets of the virtual model, in order')
  const use: string[] = []
  let overrides: Section = {}
  for (const model of models) {
    const bare = model.replace(/^openrouter\/(?!auto$)/, '')
    const params = { ...body, model: `openrouter/${bare}` }
    const upstream = (await upstreamOf(params, 'chat'))!
    const deployment = { upstream, params, info: { mode: 'chat' }, at: '' }
    use.push(await catalogue.add(bare, deployment, true))
    const unpriced = unpricedNote(deployment)
    if (unpriced) own.changed(model === preset.model ? 'model' : 'models', unpriced)
    overrides = defaultsOf({ ...deployment, params: { ...thinking, ...preset } }, new Report())
  }
  own.carried(Object.keys(overrides), 'defaults of the virtual model')
  own.lost(SAMPLED, 'write it in defaults of the virtual model, as the API takes it')
  own.lost('reasoning', 'clients send it')
  if (overrides.reasoning_effort === effort) own.carried('reasoning.effort', 'defaults of the virtual model')
  if (overrides.reasoning) own.carried('reasoning.max_tokens', 'defaults of the virtual model')
  const system = textOf(preset.system) ?? textOf(preset.system_prompt)
  own.carried(['system', 'system_prompt'], 'system of the virtual model')
  report.changed(['name', 'slug', 'id'], 'the name of the virtual model is that of --name')
  own.carried('provider', 'quirks.default of the manifest: OpenRouter goes on choosing by it')
  own.changed('route', 'a further target is tried after any failure that allows it')
  own.lost(OF_REQUEST, 'clients send it')
  own.carried('transforms', 'quirks.default of the manifest')
  own.lost('plugins', 'write it in quirks.default of the manifest; what plugins cost is not counted')
  const defaults = Object.keys(overrides).length > 0 ? { defaults: overrides } : {}
  const virtual = use.length > 0 ? [{ id: name, use, ...defaults, ...(system !== undefined && { system }) }] : []
  return { ...contentsOf(catalogue), virtualModels: virtual, lines: report.lines(input), variables: variables.toSet }
}
