/** What wire tests share: a target to speak to, frozen inputs, and a decoder read to its end. */

import type { Event } from '../../src/core/event.ts'
import type { DataPolicy } from '../../src/core/provider-settings.ts'
import type { Mapping, Model, Provider, Target, Translator } from '../../src/core/translator.ts'
import type { Decoder } from '../../src/core/wire.ts'

/** A provider that says nothing of the data that it is sent. */
export const silent: DataPolicy = {
  trainsOnData: undefined,
  logsPrompts: undefined,
  retention: undefined,
  headquarters: undefined,
  soc2: undefined,
  iso27001: undefined,
  gdpr: undefined,
}

export interface TargetOverrides {
  provider?: Partial<Provider>
  mapping?: Partial<Mapping>
  model?: Partial<Model>
  translator?: Translator
  secret?: string
}

/** For tests that translate nothing. */
const untranslated = { wire: 'acme.chat', op: 'chat' } as Translator

/** A mapping `acme-large` → `acme-large-2026` of a provider `acme` that accepts everything and supports nothing. */
export function target(overrides: TargetOverrides = {}): Target {
  const provider: Provider = {
    id: 'acme',
    name: 'Acme AI',
    baseUrl: 'http://127.0.0.1:0/v1',
    auth: { scheme: 'bearer' },
    headers: {},
    passHeaders: {},
    credentials: [],
    wires: new Map(),
    quirks: { drop: new Set(), rename: {}, default: {}, clamp: {} },
    timeouts: { connect: 1000, firstEvent: 1000, idle: 1000, total: 1000 },
    concurrency: 256,
    priority: 0,
    dataPolicy: silent,
    reasoningReplay: undefined,
    ...overrides.provider,
  }
  const model: Model = {
    id: 'acme-large',
    name: 'Acme Large',
    description: undefined,
    family: 'acme',
    aliases: [],
    created: 0,
    tokenizer: undefined,
    input: ['text'],
    output: ['text'],
    contextLength: undefined,
    maxOutput: undefined,
    stability: undefined,
    deprecatedAt: undefined,
    deactivatedAt: undefined,
    mappings: [],
    ...overrides.model,
  }
  const mapping: Mapping = {
    model,
    provider,
    externalId: 'acme-large-2026',
    wires: provider.wires,
    price: undefined,
    pricing: {},
    unpriced: 'allow',
    supports: new Set(),
    reasoningEfforts: [],
    reasoningModes: [],
    serviceTiers: [],
    regions: [],
    parameters: undefined,
    contextLength: undefined,
    maxOutput: undefined,
    minCacheableTokens: undefined,
    autoCache: false,
    maxN: 128,
    stability: undefined,
    deprecatedAt: undefined,
    deactivatedAt: undefined,
    ...overrides.mapping,
  }
  return {
    mapping,
    provider,
    credential: overrides.secret
      ? { id: 'c1', source: 'platform', secret: overrides.secret, fingerprint: 'f1' }
      : undefined,
    translator: overrides.translator ?? untranslated,
    price: mapping.price,
  }
}

/** Freezes `value` and all that it holds, so that a mutation throws. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}

/** An SSE event as framing hands it on: its data, or its data and name. */
export type RawFrame = string | { data: string; name: string }

/** The events of an answer that ends after `frames`; frames after the terminator are not read, as in production. */
export function decodeAll(decoder: Decoder, frames: readonly RawFrame[]): Event[] {
  const events: Event[] = []
  for (const frame of frames) {
    events.push(...decoder.frame(typeof frame === 'string' ? { data: frame } : frame))
    if (decoder.done) break
  }
  events.push(...decoder.end())
  return events
}
