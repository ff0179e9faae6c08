/** The simulated provider's speech: a tone, the longer the longer the text, as WAV or as plain samples. */
import { SimulatedError, type Simulation } from '../../core/operation.ts'
import { wavHead } from '../../lib/wav.ts'

const RATE = 24_000
const PITCH = 440
const MS_PER_CHARACTER = 20
const MAX_MS = 10_000
const CHUNK = 16 * 1024

/** The path of OpenAI's speech API. */
export const demo: Readonly<Record<string, Simulation>> = {
  '/audio/speech'({ json }) {
    const { input, response_format: format = 'wav' } = json as { input: string; response_format?: string }
    if (format !== 'wav' && format !== 'pcm') {
      throw new SimulatedError('response_format: the demo makes wav and pcm', 'response_format')
    }
    const audio = tone(Math.min(MAX_MS, input.length * MS_PER_CHARACTER))
    const whole = format === 'wav' ? Buffer.concat([wavHead(RATE, audio.length), audio]) : audio
    const chunks: Buffer[] = []
    for (let at = 0; at < whole.length; at += CHUNK) chunks.push(whole.subarray(at, at + CHUNK))
    return { contentType: `audio/${format}`, chunks }
  },
}

/** 16-bit samples. */
function tone(ms: number): Buffer {
  const samples = Math.round((ms / 1000) * RATE)
  const audio = Buffer.alloc(samples * 2)
  for (let at = 0; at < samples; at++)
    audio.writeInt16LE(Math.round(Math.sin((2 * Math.PI * PITCH * at) / RATE) * 8000), at * 2)
  return audio
}
