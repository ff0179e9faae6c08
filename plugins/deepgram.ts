/** Deepgram's wires `deepgram.speech` and `deepgram.transcriptions` (docs/contributing/wire-sources.md#deepgram). */
import type { Plugin } from '../src/plugin.ts'
import { speech } from './deepgram/speech.ts'
import { transcriptions } from './deepgram/transcriptions.ts'

/** Deepgram's Text to Speech and Speech to Text APIs. */
export const plugin = { wires: [speech, transcriptions] as const } satisfies Plugin
