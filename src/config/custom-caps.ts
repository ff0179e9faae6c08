/** Limits on time and concurrency of organizations' own providers, whatever their manifests say. */
import type { CustomCaps } from '../core/catalog.ts'
import { type Infer, s } from '../core/schema.ts'
import type { Provider } from '../core/translator.ts'
import { isObject } from '../json/json.ts'
import type { ProviderFile } from './schemas/provider.ts'
import { someTime } from './schemas/terms.ts'
import type { Path, Source } from './source.ts'

/** The `custom_providers` of `gateway.yaml`. */
export const customProvidersEntry = s.default(
  s.object({
    enabled: s.default(s.boolean(), false),
    max_timeout: s.default(someTime, '10m'),
    max_connect: s.default(s.duration(), '15s'),
    max_concurrency: s.default(s.integer({ minimum: 1, maximum: 100_000 }), 64),
  }),
  {},
)

/** The caps in milliseconds and calls, or undefined where custom providers are off. */
export const linkCaps = (entry: Infer<typeof customProvidersEntry>): CustomCaps | undefined =>
  entry.enabled
    ? {
        timeoutMs: entry.max_timeout,
        connectMs: Math.min(entry.max_connect, entry.max_timeout),
        concurrency: entry.max_concurrency,
      }
    : undefined

/** Paths of the capped keys that a manifest sets itself. */
export function cappedKeys(manifest: unknown): readonly Path[] {
  if (!isObject(manifest)) return []
  const { timeouts, concurrency } = manifest
  const times = isObject(timeouts) ? Object.keys(timeouts).map(key => ['timeouts', key]) : []
  return concurrency === undefined ? times : [...times, ['concurrency']]
}

/** Throws a ConfigError for the first of `keys` above its cap. Defaults above a cap are lowered to it. */
export function refuseBeyond(value: ProviderFile, keys: readonly Path[], caps: CustomCaps, source: Source): void {
  const { timeouts, concurrency } = value
  for (const path of keys) {
    const ms = path.length === 2 ? timeouts[path[1] as keyof typeof timeouts] : undefined
    const isShorter = path[1] === 'connect' && caps.connectMs < caps.timeoutMs
    const mostMs = isShorter ? caps.connectMs : caps.timeoutMs
    if (ms !== undefined && ms > mostMs) {
      const cap = isShorter ? 'max_connect' : 'max_timeout'
      throw source.error(`expected at most "${mostMs / 1000}s": the operator's "custom_providers.${cap}"`, path)
    }
    if (path.length === 1 && concurrency > caps.concurrency) {
      throw source.error(
        `expected at most ${caps.concurrency}: the operator's "custom_providers.max_concurrency"`,
        path,
      )
    }
  }
}

/** A copy of `provider` with its timeouts and concurrency lowered to the caps. */
export function capped(provider: Provider, { timeoutMs, connectMs, concurrency }: CustomCaps): Provider {
  const { connect, firstEvent, idle, total } = provider.timeouts
  const within = (ms: number) => Math.min(ms, timeoutMs)
  return {
    ...provider,
    timeouts: {
      connect: Math.min(connect, connectMs),
      firstEvent: firstEvent === undefined ? undefined : within(firstEvent),
      idle: within(idle),
      total: within(total),
    },
    concurrency: Math.min(provider.concurrency, concurrency),
    ownerConcurrency: concurrency,
  }
}
