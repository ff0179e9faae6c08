/** ElevenLabs' wires `elevenlabs.speech` and `elevenlabs.transcriptions` (docs/wire-sources.md#elevenlabs). */
import type { Plugin } from '../src/plugin.ts'
import { speech } from './elevenlabs/speech.ts'
import { transcriptions } from './elevenlabs/transcriptions.ts'

export const plugin = { wires: [speech, transcriptions] as const } satisfies Plugin
