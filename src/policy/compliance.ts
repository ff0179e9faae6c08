/** Which providers an organization's compliance policy lets it use (docs/contract.md#compliance). */

import { namesOf, refsOf } from '../core/offer.ts'
import type { Compliance } from '../core/policy.ts'
import type { DataPolicy } from '../core/provider-settings.ts'
import type { Mapping } from '../core/translator.ts'
import { meansAny } from '../limits/names.ts'

/** The policy that allows every provider and model: what changes are applied to where an organization has none. */
export const noDemands: Compliance = {
  noTraining: false,
  noLogging: false,
  gdpr: false,
  soc2: undefined,
  iso27001: false,
  soc2OrIso27001: false,
  countries: [],
  allowedProviders: [],
  blockedProviders: [],
  allowedModels: [],
  blockedModels: [],
}

interface ComplianceRequirement {
  demanded(policy: Compliance): boolean
  met(facts: DataPolicy, policy: Compliance): boolean
  /** Completes «acme …». */
  readonly issue: string
}

const demands: readonly ComplianceRequirement[] = [
  { demanded: policy => policy.noTraining, met: facts => facts.trainsOnData === false, issue: 'may train on API data' },
  { demanded: policy => policy.noLogging, met: facts => facts.logsPrompts === false, issue: 'may keep prompts' },
  { demanded: policy => policy.gdpr, met: facts => facts.gdpr === true, issue: 'is not known to comply with GDPR' },
  { demanded: policy => policy.soc2 === '1', met: facts => facts.soc2 !== undefined, issue: 'has no SOC 2 report' },
  { demanded: policy => policy.soc2 === '2', met: facts => facts.soc2 === '2', issue: 'has no SOC 2 type 2 report' },
  { demanded: policy => policy.iso27001, met: facts => facts.iso27001 === true, issue: 'has no ISO 27001 certificate' },
  {
    demanded: policy => policy.soc2OrIso27001,
    met: facts => facts.soc2 === '2' || facts.iso27001 === true,
    issue: 'has neither a SOC 2 type 2 report nor an ISO 27001 certificate',
  },
  {
    demanded: policy => policy.countries.length > 0,
    met: ({ headquarters }, { countries }) => headquarters !== undefined && countries.includes(headquarters),
    issue: 'has its headquarters in none of the allowed countries',
  },
]

/** Returns why an offer is not allowed, as a clause such as `acme may keep prompts`, or undefined. */
export function compliancePredicate(policy: Compliance): (mapping: Mapping) => string | undefined {
  const required = demands.filter(demand => demand.demanded(policy))
  const { allowedProviders, blockedProviders, allowedModels, blockedModels } = policy
  return mapping => {
    const { provider, model } = mapping
    const isNamed = (list: readonly string[]) => refsOf(provider).some(ref => list.includes(ref))
    const isModel = (list: readonly string[]) => meansAny(list, namesOf(mapping))
    if (isNamed(blockedProviders)) return `${provider.id} is a blocked provider`
    if (isModel(blockedModels)) return `${model.id} is a blocked model`
    if (allowedProviders.length > 0 && !isNamed(allowedProviders)) return `${provider.id} is no allowed provider`
    if (allowedModels.length > 0 && !isModel(allowedModels)) return `${model.id} is no allowed model`
    const failed = required.find(demand => !demand.met(provider.dataPolicy, policy))
    return failed && `${provider.id} ${failed.issue}`
  }
}
