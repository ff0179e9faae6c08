/** Files and audio of a chat request, and documents to read, that stand at addresses (docs/contract.md#fetched-addresses). */

import type { ChatRequest, ContentPart, Message } from '../../core/chat-request.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { Op, Ops } from '../../core/ops.ts'
import type { FetchedFile, MediaFetcher, Services } from '../../core/ports.ts'
import { nativeFormOf, type Target } from '../../core/translator.ts'
import type { LoadedMedia, MediaByAddress } from '../../core/wire.ts'
import { errors } from '../../lib/error.ts'
import { isAddress } from '../../lib/url.ts'
import { AUDIO_HEAD_BYTES, audioType } from '../../media/audio-type.ts'
import { IMAGE_HEAD_BYTES, imageType } from '../../media/type.ts'
import { type Addressed, addressesOf } from './addresses.ts'
import { MediaLease, mediaTypeIn, Refusals } from './media-lease.ts'

/** Different addresses in one request. */
const MAX_ADDRESSES = 20
/** Maximum bytes of a file over all places that refer to it: each place gets a copy. */
const MAX_FILE_BYTES = 32 * 1024 * 1024
/** Base64 has four characters for three bytes. */
const EXPANSION = 4 / 3

type FilePart = Extract<ContentPart, { type: 'file' }>
type AudioPart = Extract<ContentPart, { type: 'input_audio' }>

/** Fetches every address of a request once, for this attempt and those after it. */
export class Files {
  readonly #services: Pick<Services, 'media' | 'memory'>
  readonly #leases = new WeakMap<Exchange, MediaLease>()
  readonly #refusals = new Refusals()
  readonly #loaded = new WeakMap<Exchange, MediaByAddress>()

  constructor(services: Pick<Services, 'media' | 'memory'>) {
    this.#services = services
  }

  /** Returns the files that were fetched for the request. */
  loaded(ex: Exchange): MediaByAddress {
    return this.#loaded.get(ex) ?? NONE
  }

  /**
   * Puts data in place of the addresses of the exchange's request, and holds for it by its size. Undefined where nothing is
   * to be fetched. `inlines`: `target` gets data in place of every address. Rejects with the 400, 413 or 529 that names
   * the first part which cannot be fetched.
   */
  fetched(ex: Exchange, target: Target, inlines = target.provider.inlineMedia === true): Promise<void> | undefined {
    const request = ex.request!
    const { translator } = target
    const isPassed = 'document' in request || (nativeFormOf(translator, ex.input.native) && !translator.inlineMedia)
    // The provider fetches a document by itself, and what stands in a body that goes as it came.
    if (!inlines && isPassed) return undefined
    const addresses = fileAddressesIn(request)
    if (addresses.size === 0) return undefined
    return this.#fetch(ex, target, addresses, files =>
      'document' in request ? withDocument(request, files) : withFiles(request as ChatRequest, files),
    )
  }

  /** The request has ended. */
  release(ex: Exchange): void {
    this.#leases.get(ex)?.release()
  }

  async #fetch(
    ex: Exchange,
    target: Target,
    addresses: ReadonlyMap<string, Addressed>,
    replaced: (files: MediaByAddress) => Ops[Op],
  ): Promise<void> {
    this.#refusals.check(ex, target)
    const { media, memory } = this.#services
    const lease = new MediaLease(ex, memory)
    this.#leases.set(ex, lease)
    try {
      const files = await lease.during(ex, () => all(addresses, media, lease))
      this.#loaded.set(ex, files)
      const request = replaced(files)
      await ex.operation.inspect?.(request)
      ex.request = request
    } catch (thrown) {
      lease.release()
      throw this.#refusals.keep(ex, thrown, target)
    }
  }
}

const NONE: MediaByAddress = new Map()
const NO_ADDRESSES: ReadonlyMap<string, Addressed> = new Map()

/** Files and audio of a chat request that stand at addresses, or the document to read. */
export function fileAddressesIn(request: Ops[Op]): ReadonlyMap<string, Addressed> {
  if ('document' in request) return addressOfDocument(request)
  if (!('messages' in request) || !request.messages.some(isRemoteMessage)) return NO_ADDRESSES
  return addressesOf(request, addressOf)
}

const withFiles = (request: ChatRequest, files: MediaByAddress): ChatRequest =>
  Object.assign({}, request, { messages: request.messages.map(message => inlined(message, files)) })

/** One that fails ends the others. */
async function all(addresses: ReadonlyMap<string, Addressed>, media: MediaFetcher, lease: MediaLease) {
  const [, { param: last }] = [...addresses].at(-1)!
  if (addresses.size > MAX_ADDRESSES) {
    throw errors.invalidField(last, `at most ${MAX_ADDRESSES} files of a request are fetched.`)
  }
  const { tenant, signal } = lease
  let size = 0
  const one = async ([url, { param, count }]: [string, Addressed]) => {
    const take = (bytes: number) => {
      size += bytes * count
      if (size > MAX_FILE_BYTES) throw errors.fileTooLarge(MAX_FILE_BYTES, param)
      lease.take(Math.ceil(bytes * count * EXPANSION))
    }
    const file = await media.audio({ url, param, tenant, signal, take })
    return [url, loaded(file, url)] as const
  }
  return new Map(await Promise.all([...addresses].map(one)))
}

/** Where the part's file stands; undefined for one that it holds. */
function addressOf(part: ContentPart): string | undefined {
  const url =
    part.type === 'file' ? part.file.file_data : part.type === 'input_audio' ? part.input_audio.data : undefined
  return url !== undefined && isAddress(url) ? url : undefined
}

const isRemote = (part: ContentPart): boolean => addressOf(part) !== undefined
const isRemoteMessage = ({ content }: Message): boolean => Array.isArray(content) && content.some(isRemote)

function inlined(message: Message, files: MediaByAddress): Message {
  if (!isRemoteMessage(message)) return message
  const content = (message.content as ContentPart[]).map(part => {
    const url = addressOf(part)
    if (url === undefined) return part
    const file = files.get(url)!
    return part.type === 'file' ? filePart(part, file) : audioPart(part as AudioPart, file)
  })
  return { ...message, content }
}

/** In base64, as all of its places share it. */
function loaded({ pieces, contentType }: FetchedFile, url: string): LoadedMedia {
  const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  const audio = audioType(bytes.subarray(0, AUDIO_HEAD_BYTES))?.extension
  return { type: typeOf(bytes, contentType), base64: bytes.toString('base64'), name: nameIn(url), audio }
}

const dataUrl = ({ type, base64 }: LoadedMedia): string => `data:${type};base64,${base64}`

function filePart(part: FilePart, file: LoadedMedia): FilePart {
  const file_data = dataUrl(file)
  const filename = part.file.filename ?? file.name
  return { ...part, file: filename === undefined ? { file_data } : { filename, file_data } }
}

type Document = Ops['ocr']['document']
const urlOf = (document: Document): string =>
  document.type === 'document_url'
    ? document.document_url
    : typeof document.image_url === 'string'
      ? document.image_url
      : document.image_url.url

function addressOfDocument({ document }: Ops['ocr']): ReadonlyMap<string, Addressed> {
  const url = urlOf(document)
  return isAddress(url) ? new Map([[url, { param: `document.${document.type}`, count: 1 }]]) : NO_ADDRESSES
}

function withDocument(request: Ops['ocr'], files: MediaByAddress): Ops['ocr'] {
  const { document } = request
  const url = urlOf(document)
  const file = files.get(url)!
  const data = dataUrl(file)
  if (document.type === 'image_url') return { ...request, document: { type: 'image_url', image_url: data } }
  const document_name = document.document_name ?? file.name
  const held = { type: 'document_url' as const, document_url: data }
  return { ...request, document: document_name === undefined ? held : { ...held, document_name } }
}

/** Returns the type that the bytes prove, else the type that the server sent. */
function typeOf(bytes: Buffer, contentType: string): string {
  if (bytes.subarray(0, 5).toString('latin1') === '%PDF-') return 'application/pdf'
  return imageType(bytes.subarray(0, IMAGE_HEAD_BYTES)) ?? (mediaTypeIn(contentType) || 'application/octet-stream')
}

/** Sets the format that the bytes prove; otherwise keeps the part's own. */
function audioPart(part: AudioPart, { audio, base64 }: LoadedMedia): AudioPart {
  const proven = audio as AudioPart['input_audio']['format'] | undefined
  return { ...part, input_audio: { data: base64, format: proven ?? part.input_audio.format } }
}

/** The last part of its path. */
const nameIn = (url: string): string | undefined => /([^/]{1,255})$/.exec(new URL(url).pathname)?.[1]
