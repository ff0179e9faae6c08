/** A real browser plays a kept video from its signed address, and seeks in it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { film, lumaAt } from '../../src/operations/videos/demo.ts'
import { chromium, startBrowser } from '../helpers/browser.ts'
import { filmStudio } from '../helpers/film-studio.ts'
import { startGateway } from '../helpers/gateway.ts'

const SECONDS = 3600
const SOUGHT = 3005
/** From limited luma to a grey of sRGB (ITU-R BT.601). */
const greyOf = (luma: number): number => Math.round(((luma - 16) * 255) / 219)

interface Seen {
  readonly duration?: number
  readonly grey?: number
  readonly from?: number
  readonly to?: number
  readonly error?: string
}

const page = (
  address: string,
): string => `<!doctype html><video id="v" muted crossorigin src="${address}"></video><script>
  const video = document.getElementById('v')
  const on = name => new Promise(resolve => video.addEventListener(name, resolve, { once: true }))
  /** Seeking may end before the frame is shown. */
  const frameFrom = time => new Promise(resolve => {
    const look = (_, { mediaTime }) => (mediaTime >= time ? resolve() : video.requestVideoFrameCallback(look))
    video.requestVideoFrameCallback(look)
  })
  const tell = seen => fetch('/seen', { method: 'POST', body: JSON.stringify(seen) })
  video.addEventListener('error', () => tell({ error: video.error.message }))
  const run = async () => {
    await on('loadeddata')
    const duration = video.duration
    const sought = frameFrom(${SOUGHT})
    video.currentTime = ${SOUGHT}.5
    await sought
    const canvas = document.createElement('canvas').getContext('2d')
    canvas.drawImage(video, 0, 0)
    const [grey] = canvas.getImageData(8, 8, 1, 1).data
    const from = video.currentTime
    await video.play()
    while (video.currentTime < from + 0.5) await on('timeupdate')
    await tell({ duration, grey, from, to: video.currentTime })
  }
  run().catch(error => tell({ error: String(error) }))
</script>`

t.test(
  'a browser plays a kept video without a key, and seeks in it',
  { skip: !chromium && 'chromium is not installed' },
  async t => {
    const studio = await filmStudio(t)
    studio.film = film(SECONDS)
    studio.script = ['completed']
    const gateway = await startGateway(t, {
      providers: {
        acme: {
          base_url: studio.url,
          wires: { videos: 'openai.videos' },
          models: [{ model: 'film', pricing: { per_second: { default: '0' } } }],
        },
      },
      models: [{ id: 'film', name: 'film', family: 'test', input: ['text'], output: ['video'], stability: 'stable' }],
      config: { jobs: { poll: '20ms', results: 'keep' } },
    })
    const made = await gateway.post('/v1/videos', { model: 'film', prompt: 'a cat', seconds: SECONDS })
    const { id } = (await made.json()) as { id: string }
    await studio.until(() => studio.polls.size > 0)
    let address: string | undefined
    while (address === undefined) {
      const job = (await (await gateway.get(`/v1/videos/${id}`)).json()) as { content?: { url: string }[] }
      address = job.content?.[0]?.url
    }
    const kept = studio.headers.length
    const browser = await startBrowser(t)
    const seen = await new Promise<Seen>(resolve => {
      const server = createServer((req, res) => {
        if (req.url === '/') return void res.setHeader('content-type', 'text/html').end(page(address))
        let body = ''
        req.on('data', chunk => {
          body += chunk
        })
        req.on('end', () => {
          res.end()
          if (req.url === '/seen') resolve(JSON.parse(body) as Seen)
        })
      })
      t.teardown(() => {
        server.closeAllConnections()
        server.close()
      })
      server.listen(0, '127.0.0.1', () => {
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
        void browser.send('Target.createTarget', { url })
      })
    })
    t.equal(seen.error, undefined)
    t.equal(seen.duration, SECONDS)
    t.ok(Math.abs(seen.grey! - greyOf(lumaAt(SOUGHT))) <= 2, `the frame that was sought: ${seen.grey}`)
    t.ok(seen.to! > seen.from! && seen.from! >= SOUGHT, `it plays on: ${seen.from} to ${seen.to}`)
    t.equal(studio.headers.length, kept, 'the provider is not asked again')
  },
)
