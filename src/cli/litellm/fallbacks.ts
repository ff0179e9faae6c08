/** Fallbacks and aliases of LiteLLM. */
import { modeOf } from './models.ts'
import { NAME, type Names, type Pools, patternOf } from './names.ts'
import type { Report } from './report.ts'
import { listOf, PLAIN, plainName, type Section, sectionOf, textOf } from './sections.ts'

const LACKS_NAMES = 'without the names that model_list lacks'
const LAST = 'last targets of each virtual model'
const PARTS = ['litellm_settings', 'router_settings']

/** Names to try after a name, by it. */
export function readFallbacks(input: Section, names: Names, report: Report): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  const isKnown = (name: string) => names.has(name) || (NAME.test(name) && patternOf(names.keys(), name) !== undefined)
  const addTo = (name: string, more: readonly string[]) =>
    found.set(
      name,
      [...new Set([...(found.get(name) ?? []), ...more])].filter(one => one !== name),
    )
  const modesOf = (name: string) => names.get(name)?.map(modeOf) ?? ['chat']
  const addToAll = (all: readonly string[]) => {
    for (const name of names.keys()) {
      const more = all.filter(one => modesOf(one).some(mode => modesOf(name).includes(mode)))
      if (more.some(one => one !== name)) addTo(name, more)
    }
  }
  const everywhere: string[] = []
  for (const part of PARTS) {
    const section = sectionOf(input[part])
    for (const kind of ['fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks']) {
      for (const { key, name, others } of entriesOf(section[kind], `${part}.${kind}`)) {
        const known = others.filter((one): one is string => one !== undefined && isKnown(one) && one !== name)
        const isGeneric = name === undefined || (name === '*' && !names.has('*'))
        if (!(isGeneric || isKnown(name)) || known.length === 0) {
          report.lost(key, 'model_list has no such name')
          continue
        }
        if (isGeneric) everywhere.push(...known)
        else addTo(name, known)
        if (known.length < others.length) report.changed(key, LACKS_NAMES)
        else if (name === undefined) report.changed(key, LAST)
        else if (kind === 'fallbacks') report.carried(key, 'targets of the virtual model, in order')
        else report.changed(key, 'targets of the virtual model after any failure that allows another one')
      }
    }
    const given = [section.default_fallbacks].flat().map(nameOf)
    const known = given.filter((one): one is string => one !== undefined && isKnown(one))
    const key = `${part}.default_fallbacks`
    if (known.length === 0) report.lost(key, 'model_list has no such name')
    else if (known.length < given.length) report.changed(key, LACKS_NAMES)
    else report.carried(key, LAST)
    everywhere.push(...known)
  }
  if (everywhere.length > 0) addToAll(everywhere)
  return found
}

/** Names with those after them: of sections in a list, of one section, or of names alone, which hold for all. */
function entriesOf(written: unknown, at: string) {
  const list = listOf(written)
  const ofSection = (section: unknown, key: string) =>
    Object.entries(sectionOf(section)).map(([name, others]) => ({
      key: `${key}.${name}`,
      name: plainName(name),
      others: [others].flat().map(nameOf),
    }))
  if (list.length > 0 && list.every(one => typeof one === 'string'))
    return [{ key: at, name: undefined, others: list.map(nameOf) }]
  return [...ofSection(written, at), ...list.flatMap((one, index) => ofSection(one, `${at}[${index}]`))]
}

/** A name stands alone, or in a section as its `model` or `model_name`. */
function nameOf(value: unknown): string | undefined {
  const { model, model_name } = sectionOf(value)
  const name = textOf(value) ?? textOf(model) ?? textOf(model_name)
  return name && plainName(name)
}

/** Virtual models of `model_group_alias` and `model_alias_map`. A list of names shares the load. */
export function readAliases(input: Section, pools: Pools, report: Report): Section[] {
  const virtual: Section[] = []
  const targetsOf = (name = '') => (pools.has(name) && !name.includes('*') ? [name] : pools.targetsOf(name))
  for (const at of PARTS.flatMap(part => [`${part}.model_group_alias`, `${part}.model_alias_map`])) {
    const [part = '', kind = ''] = at.split('.')
    for (const [written, target] of Object.entries(sectionOf(sectionOf(input[part])[kind]))) {
      const alias = plainName(written)
      const key = `${at}.${written}`
      const use = [target].flat().flatMap(one => targetsOf(nameOf(one)))
      if (!NAME.test(alias) || alias.split('*').length > 2 || pools.isTaken(alias) || use.length === 0) {
        report.lost(key, 'the name is taken or wrong, or its model is missing')
        continue
      }
      pools.take(alias)
      const isHidden = sectionOf(target).hidden === true
      const isShared = Array.isArray(target) && use.length > 1
      virtual.push({
        id: alias,
        ...(isHidden && { hidden: true }),
        ...(isShared && { strategy: 'weight' }),
        use,
      })
      if (Array.isArray(target)) report.changed(key, 'a virtual model that draws one of those that are there')
      else if (alias === written) report.carried(key, 'a virtual model')
      else report.changed(key, `clients call it ${PLAIN}`)
    }
  }
  return virtual
}
