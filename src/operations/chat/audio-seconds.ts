/** How long audio of a chat request may be, by its frames, its head, or its size. */
import { MOST_AUDIO_TOKENS } from '../../core/audio-tokens.ts'
import type { ContentPart } from '../../core/chat-request.ts'
import { aiffSeconds } from '../../lib/aiff.ts'
import { type AudioFile, type AudioLength, audioLength, LEAST_BYTES_PER_SECOND } from '../../lib/audio-seconds.ts'
import { holdsFrames } from '../../lib/frame-seconds.ts'
import { mediaTypeOf } from '../../lib/media-type.ts'
import { isAddress } from '../../lib/url.ts'
import { UNMEASURED_TOKENS } from './content-tokens.ts'
import { headOf, type MediaBudget, type MediaData, mediaData } from './media-data.ts'

/** 16 bits at 16 kHz, and 32 kbit/s for all that is compressed: the least that is usual, so that no second is missed. */
const PLAIN_BYTES_PER_SECOND = 32_000
const COMPRESSED_BYTES_PER_SECOND = 4_000
/** Of audio at an address: a quarter of an hour. */
const ADDRESS_SECONDS = 15 * 60
/** Of audio of unknown length: the longest prompt that models read. */
const UNMEASURED_SECONDS = UNMEASURED_TOKENS / MOST_AUDIO_TOKENS

interface AudioSeconds {
  /** What is likely. */
  readonly seconds: number
  /** By how much it may be longer, as its size says, though its head does not. */
  readonly more: number
  /** By how much it may be longer where nothing says its length. */
  readonly unmeasured: number
}

type Audio = Extract<ContentPart, { type: 'input_audio' }>['input_audio']

export function audioSeconds({ data, format }: Audio, budget: MediaBudget): AudioSeconds {
  if (isAddress(data)) return { seconds: ADDRESS_SECONDS, more: 0, unmeasured: UNMEASURED_SECONDS }
  return secondsOf(mediaData(data, budget), format, budget)
}

/** Its first bytes say what it is; the format that the client names counts where they do not. */
function secondsOf(data: MediaData, format: string, budget: MediaBudget): AudioSeconds {
  const file = budget.heads-- > 0 ? new Base64File(data) : undefined
  const length = file && lengthOf(file, budget)
  if (length?.counted) return { seconds: length.seconds, more: 0, unmeasured: 0 }
  const isPlain = file !== undefined && format === 'pcm' && isHeadless(data, file)
  const bySize = data.size / (isPlain ? PLAIN_BYTES_PER_SECOND : COMPRESSED_BYTES_PER_SECOND)
  // A head may say less than its samples come to.
  if (length) return { seconds: length.seconds, more: Math.max(0, bySize - length.seconds), unmeasured: 0 }
  const most = isPlain ? bySize : data.size / LEAST_BYTES_PER_SECOND
  return { seconds: bySize, more: 0, unmeasured: Math.min(UNMEASURED_SECONDS, most - bySize) }
}

function lengthOf(file: Base64File, budget: MediaBudget): AudioLength | undefined {
  const seconds = aiffSeconds(file.head, file.size)
  return seconds === undefined ? audioLength(file, budget) : { seconds, counted: true }
}

/** Whether it is sent as samples, and decoders find nothing else in it. */
const isHeadless = ({ head }: MediaData, file: Base64File): boolean =>
  head !== undefined && mediaTypeOf(head, SAMPLES) === SAMPLES && !holdsFrames(file.head, FRAMES_WITHIN)
const SAMPLES = 'audio/pcm'
/** Of bytes from the first one on, in which frames may begin that decoders play. */
const FRAMES_WITHIN = 1024

/** A file in base64, which is decoded as far as it is read. */
class Base64File implements AudioFile {
  readonly size: number
  readonly head: Buffer
  readonly #base64: string
  #whole: Buffer | undefined

  constructor({ base64, size }: MediaData) {
    this.#base64 = base64
    this.size = size
    this.head = headOf(base64, AUDIO_READ)
    // RF64 is WAV, whose sizes stand in another chunk (EBU Tech 3306); what counts is the size of the file.
    if (RF64.test(this.head.toString('latin1', 0, 4))) this.head.write('RIFF', 'latin1')
  }

  get pieces(): Iterable<Buffer> {
    return { [Symbol.iterator]: () => this.#read() }
  }

  *#read(): Generator<Buffer> {
    yield this.head
    this.#whole ??= Buffer.from(this.#base64, 'base64')
    yield this.#whole.subarray(this.head.length)
  }
}
/** Enough for files whose head says their length, and for frames that begin behind the head of WAV. */
const AUDIO_READ = 24 * 1024
const RF64 = /^(?:RF64|BW64)$/
