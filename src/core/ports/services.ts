/** Services for filters and endpoints besides the stores of money and keys. */
import type { LimitWatch } from '../../limits/alerts.ts'
import type { Counters } from '../../limits/counters.ts'
import type { MemoryBudget } from '../../limits/memory.ts'
import type { Mask } from '../../secrets/mask.ts'
import type { Cancellation } from '../cancel.ts'
import type { MessageSocket } from '../message-socket.ts'
import type { Policies } from '../policy.ts'
import type { Target } from '../translator.ts'
import type { WireRequest } from '../wire.ts'
import type { ReplyCache, TurnStore, UploadFolder } from './cache.ts'
import type { ContentStore } from './contents.ts'
import type { Job, JobStore } from './jobs.ts'
import type { IssuerKeyStore, KeyStore, RealtimeSecretStore, SessionStore } from './keys.ts'
import type { Ledger } from './ledger.ts'
import type { OAuthStores } from './oauth.ts'
import type { ReportStore } from './reports.ts'
import type { ResponseStore } from './responses.ts'
import type { AffinityStore, Circuits, Measurements } from './routing.ts'
import type { Probe } from './stores.ts'
import type { MessageStreams } from './streams.ts'
import type { Log, Metrics, Tracing } from './telemetry.ts'

/** How loaded the process is. */
export interface Load {
  /** Recent delay of the event loop in milliseconds. */
  lagMs(): number
  /** Share of the heap's limit that is in use, from 0 to 1. */
  memory(): number
}

/** A file in the pieces in which it came. */
export interface FetchedFile {
  readonly pieces: readonly Buffer[]
  /** As its server says; '' where it says nothing. */
  readonly contentType: string
}

/** One address that a client gave. */
export interface MediaFetch {
  readonly url: string
  /** The field that holds it, which refusals name. */
  readonly param: string
  /** Organization whose share of the fetches is used. */
  readonly tenant: string
  readonly signal: AbortSignal
  /** Gets bytes before they are kept; what it throws ends the fetch. */
  readonly take: (bytes: number) => void
}

/**
 * Reads what stands at addresses that clients gave, never inside the operator's network. Rejects with the GatewayError
 * that the caller gets, or with what `take` throws.
 */
export interface MediaFetcher {
  /** The image there as a data URL, of the media type that its first bytes prove. */
  image(fetch: MediaFetch): Promise<string>
  /** The file there, of any type. */
  audio(fetch: MediaFetch): Promise<FetchedFile>
}

/** Reads documents that strangers name, never inside the operator's network, and keeps them for as long as they say. */
export interface DocumentSource {
  /**
   * The JSON text at an https address. `reader` names a share of what is read at once. Rejects with a GatewayError: 502,
   * or 529 while too many are being read.
   */
  read(url: string, reader: string): Promise<string>
  /** Reads at an operator's address, wherever it is; posts `form` there, as `basic` (`id:secret`). Rejects without an answer. */
  readTrusted(url: string, timeoutMs: number, form?: string, basic?: string): Promise<{ status: number; text: string }>
}

/** A client's range request for the result of a job. */
export interface ContentRequest {
  /** As the client wrote them. */
  readonly range: string | undefined
  readonly ifRange: string | undefined
  /** The head alone. */
  readonly isHead: boolean
  readonly signal: Cancellation
}

/** The bytes of a job's result, or one range of them. */
export interface ContentAnswer {
  readonly status: 200 | 206
  readonly type: string
  /** Names and values in turn. */
  readonly headers: string[]
  readonly chunks: AsyncIterable<Buffer>
}

/** Moves jobs on until they end. */
export interface JobRunner {
  /** Milliseconds that a job may take. */
  readonly timeoutMs: number
  /** When a job that was begun is polled first, Unix milliseconds. */
  firstPoll(now: number): number
  /** Throws a 400 for an address that callbacks do not go to. */
  checkCallback(url: string): void
  /** A job is due, or a callback. */
  wake(): void
  /** As clients get it. */
  show(job: Job): object
  /** The job whose result this token reads, or throws a 401. */
  byToken(token: string, logId: string): Promise<Job | undefined>
  /** Ends a job that runs, or throws what keeps it from that. */
  cancel(job: Job): Promise<Job>
  /** Removes a job that has ended, with its result. */
  remove(job: Job): Promise<void>
  /** Throws a GatewayError for a job that has no result. */
  content(job: Job, request: ContentRequest): Promise<ContentAnswer>
}

/** A WebSocket to a provider. */
export interface ProviderSocket {
  readonly socket: MessageSocket
  /** Masks the credential in the provider's output; undefined without a credential. */
  readonly mask: Mask | undefined
}

/** A WebSocket to open at a provider. */
export interface SocketCall {
  /** The request's id, as the provider gets it. */
  readonly id: string
  readonly tenant: string
  readonly target: Target
  readonly request: WireRequest
  /** Headers of its trace, names and values in turn. */
  readonly trace: readonly string[] | undefined
  readonly signal: Cancellation
  /** Bytes that one message may have. */
  readonly maxMessageBytes: number
}

/** Opens WebSockets to providers. Rejects with a GatewayError that may fail over. */
export interface ProviderSockets {
  open(call: SocketCall): Promise<ProviderSocket>
}

/** A request as it would go over the wire. */
export interface InProcessRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly contentType: string
  readonly body: Buffer
}

export interface InProcessAnswer {
  readonly status: number
  readonly contentType: string
  /** Taken one by one, as fast as the reader takes them. */
  readonly chunks: Iterable<Buffer>
}

/** Answers requests to one origin within this process, without a socket. */
export interface InProcessProvider {
  /** Never throws: what cannot be answered has a status of 400 or more. */
  answer(request: InProcessRequest): InProcessAnswer
  /** Opens a session; undefined for a path that has none. */
  connect(path: string): MessageSocket | undefined
}

/** The providers of a process by origin, such as `http://demo.localhost`. */
export type InProcessProviders = ReadonlyMap<string, InProcessProvider>

/** All that filters and endpoints use beside the exchange itself; `src/app` makes them. */
export interface Services {
  /** Version of the product, as the health record shows it. */
  readonly version: string
  readonly database: Probe
  /** Undefined where none is configured. */
  readonly redis?: Probe | undefined
  readonly keys: KeyStore
  readonly issuerKeys: IssuerKeyStore
  readonly sessions: SessionStore
  readonly oauth: OAuthStores
  readonly documents: DocumentSource
  /** Keys for a purpose, the newest first; the same in every process that has the master keys. */
  signingKeys(purpose: string): readonly Buffer[]
  readonly policies: Policies
  readonly ledger: Ledger
  readonly alerts?: LimitWatch | undefined
  readonly jobs: JobStore
  readonly jobRunner: JobRunner
  readonly responses: ResponseStore
  readonly contents: ContentStore
  readonly realtimeSecrets: RealtimeSecretStore
  readonly providerSockets: ProviderSockets
  readonly reports: ReportStore
  readonly counters: Counters
  readonly cache: ReplyCache
  readonly turns: TurnStore
  /** Absent where several processes serve: a message may reach another one than its stream. */
  readonly streams?: MessageStreams | undefined
  readonly metrics: Metrics
  /** Undefined where no collector is configured. */
  readonly tracing?: Tracing | undefined
  readonly log: Log
  readonly load: Load
  readonly memory: MemoryBudget
  readonly media: MediaFetcher
  readonly measurements: Measurements
  readonly circuits: Circuits
  readonly affinity: AffinityStore
  /** Undefined where generated images are not saved. */
  readonly uploads: UploadFolder | undefined
  /** Chance: uniform, from 0 to below 1. */
  random(): number
  /** Wall clock, Unix milliseconds. */
  now(): number
}
