/** Deepgram's wire `deepgram.speech` (wire/media.md section 1). */
import type { Plugin } from '../src/plugin.ts'
import { speech } from './deepgram/speech.ts'

export const plugin = { wires: [speech] as const } satisfies Plugin
