/** ElevenLabs' wires `elevenlabs.speech` and `elevenlabs.transcriptions` (docs/contributing/wire-sources.md#elevenlabs). */
import type { Plugin } from '../src/plugin.ts'
import { speech } from './elevenlabs/speech.ts'
import { transcriptions } from './elevenlabs/transcriptions.ts'

/** ElevenLabs' Text to Speech and Speech to Text APIs. */
export const plugin = { wires: [speech, transcriptions] as const } satisfies Plugin
