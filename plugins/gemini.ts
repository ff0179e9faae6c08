/**
 * Google's generateContent wire on its two surfaces, `gemini.generate` (AI Studio) and `gemini.vertex` (Vertex AI), and
 * its embeddings: `gemini.embeddings`, `gemini.vertex-embeddings` and `gemini.vertex-embed-content`; and its speech:
 * `gemini.speech` and `gemini.vertex-speech`; and images: `gemini.images`, `gemini.image-edits`, the same of Vertex
 * AI, and `vertex.imagen`.
 */
import { countIn, type Plugin, type Translator } from '../src/plugin.ts'
import { NATIVE_WIRE } from './gemini/choice.ts'
import { GenerateDecoder } from './gemini/decode.ts'
import { embeddings } from './gemini/embeddings.ts'
import { encode, MAX_STOPS } from './gemini/encode.ts'
import { error } from './gemini/error.ts'
import { imagen } from './gemini/imagen.ts'
import { imagesOf } from './gemini/images.ts'
import { native, withMedia } from './gemini/native.ts'
import { speech } from './gemini/speech.ts'
import { type Surface, studio, vertex } from './gemini/surface.ts'
import { asksForSearch } from './gemini/tools.ts'
import { videos } from './gemini/videos.ts'
import { counter, only } from './shared/answer.ts'
import { first } from './shared/stops.ts'

const METHOD = /:(?:streamGenerateContent\?alt=sse|generateContent)$/

/** AI Studio counts a whole request only in a wrapper that repeats the model; Vertex AI accepts it directly. */
const countOf = (surface: Surface) =>
  counter(
    ({ path, body }, { mapping }) => ({
      path: path.replace(METHOD, ':countTokens'),
      body:
        surface === studio
          ? { generateContentRequest: { model: `models/${mapping.externalId}`, ...body } }
          : only(body, ['contents', 'systemInstruction', 'tools', 'generationConfig']),
    }),
    answer => countIn(answer.totalTokens),
  )

/** Public videos at YouTube, which Google fetches. */
const YOUTUBE = /^https:\/\/(?:www\.)?youtu(?:\.be|be\.com)\//

const translator = (surface: Surface): Translator<'chat'> => ({
  op: 'chat',
  wire: surface.wire,
  ...(surface === studio && { inlineMedia: true }),
  publicFiles: YOUTUBE,
  identities: { labels: undefined },
  takesStop: first(MAX_STOPS),
  encode: (request, target, stream) => encode(request, target, stream, surface),
  native: {
    wire: NATIVE_WIRE,
    withMedia,
    decoder: (mode, target) => new GenerateDecoder(mode, target, true, { native: true }),
    encode: (body, input, target, stream) => native(body, input, target, stream, surface),
  },
  decoder: (mode, target, input) =>
    new GenerateDecoder(mode, target, !input || asksForSearch(input), { candidates: input?.n ?? 1 }),
  count: countOf(surface),
  error,
})

const speeches = [speech('gemini.speech', studio), speech('gemini.vertex-speech', vertex)]

const images = [...imagesOf('', studio), ...imagesOf('vertex-', vertex), imagen] as const

const films = [videos('gemini.videos', studio), videos('gemini.vertex-videos', vertex)]

/** Google's Gemini API and the same models on Vertex AI. */
export const plugin = {
  wires: [translator(studio), translator(vertex), ...embeddings, ...speeches, ...images, ...films] as const,
} satisfies Plugin
