/** Media: what is asked for, and what the simulated provider answers with: an image of 4 MB, audio in pieces, a text. */

const MIB = 1024 * 1024
/** Of base64. */
const IMAGE_CHARACTERS = 4 * MIB
const UPLOAD_BYTES = 10 * MIB
const AUDIO_PIECE = 16 * 1024
const AUDIO_PIECES = 64
/** As long as that of the official clients: the longer, the sooner it is not found. */
const BOUNDARY = '----formdata-undici-047264926355'

/** Begins as a PNG does. */
const image = `iVBORw0KGgo${'AbCdEfGhIjKlMnOp'.repeat(IMAGE_CHARACTERS / 16)}`.slice(0, IMAGE_CHARACTERS)
export const images = {
  request: ({ model }) => JSON.stringify({ model, prompt: 'a red barn in the snow' }),
  answer: Buffer.from(
    JSON.stringify({
      created: 1_790_000_000,
      data: [{ b64_json: image }],
      usage: { input_tokens: 10, output_tokens: 4000, total_tokens: 4010 },
    }),
  ),
  check(body) {
    if (JSON.parse(body).data[0].b64_json !== image) throw new Error("the answer's image is not the provider's")
  },
}

/** Of the characters of texts, so that every process reads it alike. */
export const audioPiece = Buffer.alloc(AUDIO_PIECE, 'audio')
export const speech = {
  pieces: AUDIO_PIECES,
  request: ({ model }) => JSON.stringify({ model, input: 'A text that is said. '.repeat(20), response_format: 'mp3' }),
  check(body) {
    if (body.length !== AUDIO_PIECE * AUDIO_PIECES) throw new Error(`the answer has ${body.length} bytes of audio`)
  },
}

const part = (name, more = '') => `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n`
/** Bytes of all values, as audio has them. */
const file = Buffer.alloc(UPLOAD_BYTES)
for (let at = 0; at < UPLOAD_BYTES; at++) file[at] = (Math.imul(at, 2_654_435_761) >>> 13) & 0xff
export const transcriptions = {
  contentType: `multipart/form-data; boundary=${BOUNDARY}`,
  request: ({ model }) =>
    Buffer.concat([
      Buffer.from(`${part('model')}${model}\r\n${part('file', '; filename="a.mp3"')}`),
      file,
      Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
    ]),
  answer: JSON.stringify({ text: 'What was said.', usage: { type: 'duration', seconds: 60 } }),
  check(body) {
    if (JSON.parse(body).text !== 'What was said.') throw new Error("the answer's text is not the provider's")
  },
}
