/** Everything that configuration may name. */

import type { FoundModel } from '../core/catalog.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import type { Operation } from '../core/operation.ts'
import type { Services } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import type { Translator } from '../core/translator.ts'
import type { CallbackCheck } from './alerts.ts'

/** Makes endpoints answer clients of another gateway, too, where `compat` of gateway.yaml says so. */
interface CompatMode {
  /** Its own endpoints. */
  readonly endpoints: readonly Endpoint[]
  /** Returns the forms in which an endpoint is served: the first at its own path, others at further ones. */
  adapt(endpoint: Endpoint): readonly Endpoint[]
}

/** Everything that configuration may name, and the end of compiled chains. */
export interface Registries {
  readonly wires: ReadonlyMap<string, Translator>
  readonly filters: ReadonlyMap<string, FilterFactory>
  readonly endpoints: readonly Endpoint[]
  /** Modes of `compat` by name. */
  readonly compat?: Readonly<Record<string, CompatMode>>
  /** Operations by name. */
  readonly operations: Readonly<Record<string, Operation>>
  readonly services: Services
  /** Latest model list of the provider at an address; without it nothing is discovered. */
  readonly found?: (baseUrl: string) => readonly FoundModel[]
  /** Origins of simulated providers within this process; `server.demo` says whether they serve. */
  readonly simulated?: ReadonlySet<string>
  readonly isCallbackAllowed?: CallbackCheck
  /** Calls the provider of an exchange. */
  readonly terminal: (ex: Exchange) => Promise<Reply>
}
