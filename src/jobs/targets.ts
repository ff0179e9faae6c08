/** Finds the targets of a job in the configuration that is in force now. */

import { credentialName } from '../core/job.ts'
import type { Job } from '../core/ports.ts'
import { type Credential, REGION } from '../core/provider-settings.ts'
import type { Target } from '../core/translator.ts'
import type { JobsContext } from './context.ts'

/**
 * The target of a job, with its own credential first, and then the others of the same account. Empty where the provider or its
 * wire is gone.
 */
export async function targetsOf(job: Job, context: JobsContext): Promise<Target[]> {
  const policy = await context.policies.of(job.orgId)
  const catalog = policy.catalog(context.catalog())
  const provider = catalog.providers.get(job.provider)
  const model = catalog.models.get(job.model)
  const translator = context.wires.get(job.wire)
  const mapping = model?.mappings.find(one => one.provider.id === job.provider)
  if (!provider || !mapping || !translator?.job) return []
  const isOwn = job.credential.startsWith('byok:')
  const credentials: readonly (Credential | undefined)[] = isOwn
    ? policy.credentials(provider.id)
    : provider.credentials
  const all = credentials.length > 0 ? credentials : [undefined]
  const ordered = [...all].sort(
    (a, b) => Number(credentialName(b) === job.credential) - Number(credentialName(a) === job.credential),
  )
  const region = job.region ?? undefined
  const baseUrl = region === undefined ? undefined : provider.baseUrl.replaceAll(REGION, region)
  const at = { mapping: { ...mapping, externalId: job.mapping }, provider, translator, price: undefined, baseUrl }
  return ordered.map(credential => (region === undefined ? { ...at, credential } : { ...at, credential, region }))
}
