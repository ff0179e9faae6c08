/** Deepgram's wires `deepgram.speech` and `deepgram.transcriptions` (wire/media.md section 1). */
import type { Plugin } from '../src/plugin.ts'
import { speech } from './deepgram/speech.ts'
import { transcriptions } from './deepgram/transcriptions.ts'

export const plugin = { wires: [speech, transcriptions] as const } satisfies Plugin
