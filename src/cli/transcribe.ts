/** `gatewayctl transcribe`: prints the text of an audio file, through the public listener. */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open as openFile } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { printable } from '../lib/printable.ts'
import { transcriptFormats } from '../operations/transcriptions/request.ts'
import { type FormContent, readText } from './http.ts'
import { errorCode, Failure, type Io } from './io.ts'
import { addPublicOptions, type PublicOptions, post } from './public.ts'
import { servedOf, showServed } from './remarks.ts'
import type { Open } from './session.ts'

const MIB = 1024 * 1024
/** Bytes between two progress remarks of an upload. */
const REMARK_EVERY = 8 * MIB

interface TranscribeOptions extends PublicOptions {
  readonly model: string
  readonly format: (typeof transcriptFormats)[number]
}

/** Adds `transcribe`, which calls `POST /v1/audio/transcriptions`. */
export function addTranscribe(program: Command, open: Open): void {
  const transcribe = program
    .command('transcribe')
    .description('transcribe an audio file; with --json, as json unless --format names another JSON')
    .argument('<file>', 'the file, such as speech.mp3; at most 64 MiB')
    .option('--model <model>', 'a model, or provider/model', 'demo-transcribe')
    .addOption(new Option('--format <format>', 'format of the transcript').choices(transcriptFormats).default('text'))
    .action(async (file: string, options: TranscribeOptions, command: Command) => {
      const session = open(command)
      const { io, json } = session
      const isJson = options.format.endsWith('json')
      const format = json && !isJson ? 'json' : options.format
      const handle = await opened(resolve(io.cwd, file), file)
      try {
        const { size } = await handle.stat()
        const fields = { model: options.model, response_format: format }
        const form = formOf(fields, handle, extname(file), size, json ? undefined : io)
        const response = await post('transcribe', '/v1/audio/transcriptions', { form }, options, session)
        const text = await readText(response)
        io.out(text.endsWith('\n') ? text : `${text}\n`)
        if (!json) showServed(servedOf(response.headers), io, 'price unknown')
      } finally {
        await handle.close()
      }
    })
  addPublicOptions(transcribe)
}

/** Throws a Failure with the reason for a file that cannot be read. */
async function opened(path: string, name: string): Promise<FileHandle> {
  try {
    const handle = await openFile(path)
    if ((await handle.stat()).isFile()) return handle
    await handle.close()
  } catch (thrown) {
    throw new Failure(`cannot read ${printable(name)}: ${errorCode(thrown) ?? 'it cannot be opened'}`)
  }
  throw new Failure(`cannot read ${printable(name)}: not a file`)
}

/** Reads the file while it is sent; reports the progress of a large one on `io`. */
function formOf(
  fields: Readonly<Record<string, string>>,
  file: FileHandle,
  extension: string,
  size: number,
  io: Io | undefined,
): FormContent {
  const boundary = `form-${randomUUID()}`
  const part = (disposition: string) => `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n`
  const texts = Object.entries(fields).map(([name, text]) => `${part(`name="${name}"`)}${text}\r\n`)
  // Only the extension of the name is sent, which identifies the type.
  const filename = `audio${/^\.[A-Za-z0-9]{1,8}$/.test(extension) ? extension : ''}`
  const head = Buffer.from(`${texts.join('')}${part(`name="file"; filename="${filename}"`)}`)
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    size: head.length + size + tail.length,
    async *pieces() {
      yield head
      let sent = 0
      if (size > 0) {
        for await (const piece of file.createReadStream({ start: 0, end: size - 1, autoClose: false })) {
          const { length } = piece as Buffer
          if (Math.floor((sent + length) / REMARK_EVERY) > Math.floor(sent / REMARK_EVERY)) {
            io?.progress?.(`sent ${Math.floor((sent + length) / MIB)} of ${Math.ceil(size / MIB)} MiB\n`)
          }
          sent += length
          yield piece as Buffer
        }
      }
      yield tail
      if (size >= REMARK_EVERY) io?.progress?.('upload complete; waiting for the transcript\n')
    },
  }
}
