/** `gatewayctl speak`: converts text to audio, into a file or a pipe, through the public listener. */
import { type FileHandle, open as openFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { extname, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { printable } from '../lib/printable.ts'
import { speechFormats } from '../operations/speech/request.ts'
import { Failure, unwritable } from './io.ts'
import { addPublicOptions, type PublicOptions, post } from './public.ts'
import { remarkWhile, servedOf, showServed } from './remarks.ts'
import type { Open } from './session.ts'

const formats = Object.keys(speechFormats)

interface SpeakOptions extends PublicOptions {
  readonly model: string
  readonly voice?: string
  readonly format?: string
}

/** Receives audio pieces in order. Rejects with a Failure that says why it cannot. */
type Sink = (piece: Buffer) => void | Promise<void>

/** Adds `speak`, which calls `POST /v1/audio/speech`. */
export function addSpeak(program: Command, open: Open): void {
  const speak = program
    .command('speak')
    .description('convert text to speech; with --json and without --out the audio is printed as base64')
    .argument('<text>', 'the text')
    .option('--out <file>', 'file to write or overwrite (default: standard output)')
    .option('--model <model>', 'a model, or provider/model', 'demo-speech')
    .option('--voice <voice>', 'such as alloy')
    .addOption(
      new Option('--format <format>', 'format of the audio (default: the extension of --out)').choices(formats),
    )
    .action(async (text: string, options: SpeakOptions, command: Command) => {
      const session = open(command)
      const { io, json } = session
      const { out, model, voice } = options
      if (out === undefined && !json && io.isTerminal) {
        throw new Failure('audio is not written to a terminal; name a file as --out, or redirect the output')
      }
      const response_format =
        options.format ?? formats.find(format => `.${format}` === extname(out ?? '').toLowerCase())
      const body = { model, input: text, voice, response_format }
      const pieces: Buffer[] = []
      const { head, bytes } = await remarkWhile('audio', json ? undefined : io, async () => {
        const response = await post('speak', '/v1/audio/speech', { body }, options, session)
        const take: Sink = json ? piece => void pieces.push(piece) : piece => io.out(piece)
        const length =
          out === undefined ? await receive(response, take) : await save(response, resolve(io.cwd, out), out)
        const { 'content-type': content_type } = response.headers
        return { head: { content_type, ...servedOf(response.headers) }, bytes: length }
      })
      if (json) {
        const where = out === undefined ? { audio: Buffer.concat(pieces).toString('base64') } : { file: out }
        session.print({ ...head, bytes, ...where }, () => '')
        return
      }
      if (out !== undefined) io.out(`${printable(out)}\n`)
      showServed(head, io, 'its price is in the usage')
    })
  addPublicOptions(speak)
}

/** Resolves with the number of bytes; rejects with a Failure for truncated audio or any other answer. */
async function receive(response: IncomingMessage, take: Sink): Promise<number> {
  const type = response.headers['content-type'] ?? ''
  if (!/^(?:audio\/|application\/octet-stream)/.test(type)) {
    response.destroy()
    throw new Failure("the answer is not audio; pass the gateway's public listener as --url")
  }
  let bytes = 0
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      await take(piece)
      bytes += piece.length
    }
  } catch (thrown) {
    if (thrown instanceof Failure) throw thrown
    throw new Failure(`the audio broke off after ${bytes} bytes`)
  }
  return bytes
}

/** Writes audio while it arrives. A Failure names the file. */
async function save(response: IncomingMessage, path: string, name: string): Promise<number> {
  let file: FileHandle
  try {
    file = await openFile(path, 'w')
  } catch (thrown) {
    response.destroy()
    throw unwritable(name, thrown)
  }
  try {
    return await receive(response, async piece => {
      await file.writeFile(piece).catch((thrown: unknown) => {
        throw unwritable(name, thrown)
      })
    })
  } finally {
    await file.close()
  }
}
