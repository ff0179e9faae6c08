/** ElevenLabs' wire `elevenlabs.speech` (wire/media.md section 1). */
import type { Plugin } from '../src/plugin.ts'
import { speech } from './elevenlabs/speech.ts'

export const plugin = { wires: [speech] as const } satisfies Plugin
