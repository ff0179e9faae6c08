/** `gatewayctl video`: generates a video into a file and shows its progress. */
import { createWriteStream } from 'node:fs'
import { resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import type { ShownVideo } from '../admin/commands/jobs.ts'
import { printable } from '../lib/printable.ts'
import { call, readText } from './http.ts'
import { Failure } from './io.ts'
import { addPublicOptions, type PublicOptions, post, publicUrl, withKey } from './public.ts'
import type { Open, Session } from './session.ts'

const POLL_MS = 1_000

interface VideoOptions extends PublicOptions {
  readonly model: string
  readonly out: string
  readonly size?: string
  readonly seconds?: string
}

/** Adds `video`, which calls `POST /v1/videos` and polls the admin listener. */
export function addVideo(program: Command, open: Open): void {
  const video = program
    .command('video')
    .description('generate a video and wait for it')
    .argument('<prompt>', 'the prompt')
    .option('--out <file>', 'file to write or overwrite', 'video.mp4')
    .option('--model <model>', 'a model, or provider/model', 'demo-video')
    .option('--size <size>', 'such as 1280x720')
    .option('--seconds <seconds>', 'such as 4')
    .action(async (prompt: string, options: VideoOptions, command: Command) => {
      const session = open(command)
      const { model, size, seconds } = options
      // Its progress is read there: without the listener, nothing is made that would be paid.
      await session.admin.command('status')
      const answer = await post('video', '/v1/videos', { body: { model, prompt, size, seconds } }, options, session)
      const { id } = JSON.parse(await readText(answer)) as { id: string }
      const done = await ended(id, session)
      if (done.status !== 'completed' || done.address === null) {
        throw new Failure(`${id} is ${done.status}${done.error ? `: ${done.error.message}` : ''}`)
      }
      await save(done.address, options, session)
      if (session.json) session.io.out(`${JSON.stringify({ id, file: options.out, cost: done.cost })}\n`)
      else session.io.out(`${printable(options.out)}\n`)
    })
  addPublicOptions(video)
}

async function ended(id: string, { admin, io, json }: Session): Promise<ShownVideo> {
  for (;;) {
    const job = await admin.command<ShownVideo>('videos.show', { id })
    if (!json) io.progress?.(`\r${bar(job.progress ?? 0)} ${job.status}${job.completedAt === null ? '' : '\n'}`)
    if (job.completedAt !== null) return job
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
}

const BAR_CHARACTERS = 20
function bar(progress: number): string {
  const full = Math.round((progress / 100) * BAR_CHARACTERS)
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_CHARACTERS - full)}] ${String(progress).padStart(3)}%`
}

/** Reads the signed address at the host by which this command reaches the gateway, while the key of the job is in use. */
async function save(address: string, options: VideoOptions, session: Session): Promise<void> {
  const { pathname, search } = new URL(address)
  const url = new URL(pathname + search, await publicUrl(options.url, session))
  const own = options.keyStdin ? 'given' : session.io.env.GATEWAY_API_KEY
  const response = await withKey(own, options.project, session, () => call(url, { method: 'GET' }))
  if (response.statusCode !== 200) throw new Failure(`the video cannot be read: status ${response.statusCode}`)
  await pipeline(response, createWriteStream(resolve(session.io.cwd, options.out)))
}
