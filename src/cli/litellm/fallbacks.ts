/** Fallbacks and aliases of LiteLLM. */
import { NAME, type Names, type Pools, patternOf } from './names.ts'
import type { Report } from './report.ts'
import { listOf, plainName, type Section, sectionOf, textOf } from './sections.ts'

const LACKS_NAMES = 'without the names that model_list lacks'
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
  const addToAll = (more: readonly string[]) => {
    for (const name of names.keys()) if (more.some(one => one !== name)) addTo(name, more)
  }
  const everywhere: string[] = []
  for (const part of PARTS) {
    const section = sectionOf(input[part])
    for (const kind of ['fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks']) {
      for (const [index, entry] of listOf(section[kind]).entries()) {
        for (const [given, written] of Object.entries(sectionOf(entry))) {
          const key = `${part}.${kind}[${index}].${given}`
          const name = plainName(given)
          const others = [written].flat().map(nameOf)
          const known = others.filter((one): one is string => one !== undefined && isKnown(one) && one !== name)
          const isGeneric = name === '*' && !names.has('*')
          if (!(isGeneric || isKnown(name)) || known.length === 0) {
            report.lost(key, 'model_list has no such name')
            continue
          }
          if (isGeneric) everywhere.push(...known)
          else addTo(name, known)
          if (known.length < others.length) report.changed(key, LACKS_NAMES)
          else if (kind === 'fallbacks') report.carried(key, 'targets of the virtual model, in order')
          else report.changed(key, 'targets of the virtual model after any failure that allows another one')
        }
      }
    }
    const given = listOf(section.default_fallbacks).map(nameOf)
    const known = given.filter((one): one is string => one !== undefined && isKnown(one))
    const key = `${part}.default_fallbacks`
    if (known.length === 0) report.lost(key, 'model_list has no such name')
    else if (known.length < given.length) report.changed(key, LACKS_NAMES)
    else report.carried(key, 'last targets of each virtual model')
    everywhere.push(...known)
  }
  if (everywhere.length > 0) addToAll(everywhere)
  return found
}

/** A fallback is a name, or a section with a `model`. */
function nameOf(value: unknown): string | undefined {
  const name = textOf(value) ?? textOf(sectionOf(value).model)
  return name && plainName(name)
}

/** Virtual models of `model_group_alias`. */
export function readAliases(input: Section, pools: Pools, report: Report): Section[] {
  const virtual: Section[] = []
  for (const part of PARTS) {
    for (const [written, target] of Object.entries(sectionOf(sectionOf(input[part]).model_group_alias))) {
      const name = nameOf(target) ?? ''
      const alias = plainName(written)
      const key = `${part}.model_group_alias.${written}`
      const use = pools.has(name) && !name.includes('*') ? [name] : pools.targetsOf(name)
      if (!NAME.test(alias) || alias.split('*').length > 2 || pools.isTaken(alias) || use.length === 0) {
        report.lost(key, 'the name is taken or wrong, or its model is missing')
        continue
      }
      pools.take(alias)
      const isHidden = sectionOf(target).hidden === true
      virtual.push({ id: alias, ...(isHidden && { hidden: true }), use })
      if (alias === written) report.carried(key, 'a virtual model')
      else report.changed(key, 'clients call it without the marks on its letters')
    }
  }
  return virtual
}
