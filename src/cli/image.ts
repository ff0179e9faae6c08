/** `gatewayctl image`: generates an image into a file, through the public listener. */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { printable } from '../lib/printable.ts'
import { imageType } from '../media/type.ts'
import { readText } from './http.ts'
import { Failure, unwritable } from './io.ts'
import { addPublicOptions, type PublicOptions, parseAnswer, post } from './public.ts'
import { remarkWhile, servedOf, showServed } from './remarks.ts'
import type { Open } from './session.ts'

const PATH = '/v1/images/generations'

interface ImageOptions extends PublicOptions {
  readonly model: string
  readonly size?: string
  readonly quality?: string
}

/** The part of an answer that becomes a file. */
interface Answer {
  readonly data?: readonly { readonly b64_json?: string }[]
}

/** Adds `image`, which calls `POST /v1/images/generations`. */
export function addImage(program: Command, open: Open): void {
  const image = program
    .command('image')
    .description('generate an image; with --json and without --out the answer is printed and no file is written')
    .argument('<prompt>', 'the prompt')
    .option('--out <file>', 'file to write or overwrite (default: a new file image.<type>)')
    .option('--model <model>', 'a model, or provider/model', 'demo-image')
    .option('--size <size>', 'such as 1024x1024, or 2K')
    .option('--quality <quality>', 'such as low or high')
    .action(async (prompt: string, options: ImageOptions, command: Command) => {
      const session = open(command)
      const { io, json } = session
      const { model, size, quality } = options
      const { text, served } = await remarkWhile('image', json ? undefined : io, async () => {
        const response = await post('image', PATH, { body: { model, prompt, size, quality } }, options, session)
        return { text: await readText(response), served: servedOf(response.headers) }
      })
      const answer = parseAnswer<Answer>(text)
      const [first] = answer.data ?? []
      if (first?.b64_json === undefined) throw new Failure('the answer contains no image')
      if (!json || options.out !== undefined) {
        const bytes = Buffer.from(first.b64_json, 'base64')
        const type = imageType(bytes)?.replace('image/', '') ?? 'bin'
        let file = options.out ?? `image.${type}`
        // The image is paid for.
        for (let next = 2; options.out === undefined && existsSync(resolve(io.cwd, file)); next++)
          file = `image-${next}.${type}`
        await write(resolve(io.cwd, file), file, bytes, options.out === undefined)
        if (!json) io.out(`${printable(file)}\n`)
      }
      if (json) io.out(text.endsWith('\n') ? text : `${text}\n`)
      else showServed(served, io, 'price unknown')
    })
  addPublicOptions(image)
}

async function write(path: string, name: string, bytes: Buffer, isNew: boolean): Promise<void> {
  try {
    await writeFile(path, bytes, { flag: isNew ? 'wx' : 'w' })
  } catch (thrown) {
    throw unwritable(name, thrown)
  }
}
