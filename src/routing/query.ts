/**
 * The input of routing for one request. It is a value: planning does not change it, and equal queries have equal plans.
 */
import type { Catalog, Preset } from '../core/catalog.ts'
import type { ChatRequest } from '../core/chat-request.ts'
import type { PromptMeter } from '../core/meter.ts'
import type { Operation } from '../core/operation.ts'
import type { Op, Ops } from '../core/ops.ts'
import type { Access, Labels, Policy, PricedRequest } from '../core/policy.ts'
import type { Principal } from '../core/ports.ts'
import type { Snapshot } from '../core/snapshot.ts'

/** The fields of canonical requests that routing reads; only chat has preferences. */
export type RoutedRequest = Readonly<
  Ops[Op] & Partial<Pick<ChatRequest, 'routing' | 'free_models_only' | 'no_reasoning' | 'models' | 'provider'>>
>

/**
 * `terms` may be computed when they are first read, and stay the same from then on. `promptTokens` counts earlier reasoning
 * once there is a target that reads it.
 */
export interface RoutingQuery extends PricedRequest {
  readonly operation: Operation
  readonly request: RoutedRequest
  readonly streaming: boolean
  /** The catalogue after the policy of the caller. */
  readonly catalog: Catalog
  /** Where else a model is served, for the refusal of a request at the wrong endpoint. */
  readonly snapshot: Pick<Snapshot, 'routes'>
  /** Undefined for an operator's query, which covers all organizations. */
  readonly principal: Pick<Principal, 'orgId' | 'orgName' | 'projectId' | 'keyId' | 'keyName' | 'mode'> | undefined
  /** The caller that an operator's query assumes for conditions. */
  readonly asker?: Pick<Principal, 'orgId' | 'orgName' | 'projectId' | 'keyId' | 'keyName'> | undefined
  /** Tags of the request. */
  readonly tags?: Labels['tags'] | undefined
  /** The principal's organization, as health and affinity count it; '' for an operator's query. */
  readonly tenant: string
  /** Undefined means no keys of the organization's own. */
  readonly policy: Pick<Policy, 'credentials'> | undefined
  /** Undefined denies nothing. */
  readonly access: Pick<Access, 'restricted' | 'issue' | 'providerIssue'> | undefined
  /** Unix milliseconds of the request's arrival. */
  readonly at: number
  /** The name of the session that the request is part of, as the caller chose it. */
  readonly session: string | undefined
  /** False when the caller allows one provider only. */
  readonly failover: boolean
  /** It copies another request, so that no rule applies. */
  readonly isCopy?: boolean
  /** Reads the request again with other fields; undefined on client wires whose fields have other names. */
  reread?(preset: Preset): RoutedRequest | undefined
}

/** Facts that all queries of one request share. */
interface QueryFacts extends Pick<RoutingQuery, 'operation' | 'streaming' | 'snapshot' | 'terms' | 'at'> {
  readonly caller: Pick<RoutingQuery, 'principal' | 'policy' | 'access' | 'tenant'> & {
    readonly labels: Pick<Labels, 'tags'>
  }
  readonly prompt: Pick<PromptMeter, 'tokens'>
}

/** A class, because V8 makes a new hidden class for each object literal that has accessors. */
export class RequestQuery implements RoutingQuery {
  readonly operation: RoutingQuery['operation']
  readonly request: RoutedRequest
  readonly streaming: boolean
  readonly catalog: RoutingQuery['catalog']
  readonly snapshot: RoutingQuery['snapshot']
  readonly principal: RoutingQuery['principal']
  readonly tags: RoutingQuery['tags']
  readonly policy: RoutingQuery['policy']
  readonly access: RoutingQuery['access']
  readonly at: number
  readonly session: string | undefined
  readonly failover: boolean
  readonly #facts: QueryFacts

  constructor(
    facts: QueryFacts,
    catalog: Catalog,
    request: RoutedRequest,
    session: string | undefined,
    failover: boolean,
  ) {
    this.operation = facts.operation
    this.request = request
    this.streaming = facts.streaming
    this.catalog = catalog
    this.snapshot = facts.snapshot
    this.principal = facts.caller.principal
    this.tags = facts.caller.labels.tags
    this.policy = facts.caller.policy
    this.access = facts.caller.access
    this.at = facts.at
    this.session = session
    this.failover = failover
    this.#facts = facts
  }

  get tenant(): string {
    return this.#facts.caller.tenant
  }

  get promptTokens(): number {
    return this.#facts.prompt.tokens
  }

  get terms(): RoutingQuery['terms'] {
    return this.#facts.terms
  }
}

/** The organization whose measurements count; null for all of them. */
export const viewerOf = ({ principal }: Pick<RoutingQuery, 'principal'>): string | null => principal?.orgId ?? null
