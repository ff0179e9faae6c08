/** Chunks between a provider's socket and their reader: nothing is lost. */
import * as fc from 'fast-check'
import t from 'tap'
import { errors } from '../../src/core/error.ts'
import { CoalescedChunks } from '../../src/lib/chunk-coalescer.ts'
import { ChunkQueue } from '../../src/upstream/chunk-queue.ts'

const textOf = (chunks: readonly Buffer[] | undefined) => chunks && Buffer.concat(chunks).toString()
/** Small pieces that stay as they are. */
const FEW = 16
const turn = () => new Promise<void>(resolve => setImmediate(resolve))

t.test('what came before a failure is given first', async t => {
  const arrivals = new ChunkQueue(() => {})
  arrivals.push(Buffer.from('a'))
  arrivals.push(Buffer.from('b'))
  t.equal(arrivals.bytes, 2)
  arrivals.fail(errors.truncated())
  t.equal(textOf(await arrivals.take()), 'ab')
  await t.rejects(arrivals.take(), errors.truncated())
  const waited = new ChunkQueue(() => {})
  const taken = waited.take()
  waited.fail(errors.truncated())
  await t.rejects(taken, errors.truncated())
})

t.test('a reader that waits for the first chunk gets all that come with it', async t => {
  const arrivals = new ChunkQueue(() => {})
  const taken = arrivals.take()
  for (const text of ['a', 'b', 'c']) arrivals.push(Buffer.from(text))
  t.equal(textOf(await taken), 'abc')
  const last = arrivals.take()
  arrivals.push(Buffer.from('d'))
  arrivals.end()
  t.equal(textOf(await last), 'd')
  t.equal(await arrivals.take(), undefined)
})

t.test('a reader gets every byte once and in order, however they come', async t => {
  const piece = fc.record({ text: fc.string({ minLength: 1 }), pause: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(piece), async pieces => {
      let emptied = 0
      const arrivals = new ChunkQueue(() => emptied++)
      const got: string[] = []
      const read = async () => {
        for (let chunks = await arrivals.take(); chunks; chunks = await arrivals.take()) got.push(textOf(chunks)!)
      }
      const done = read()
      for (const { text, pause } of pieces) {
        arrivals.push(Buffer.from(text))
        if (pause) await turn()
      }
      arrivals.end()
      await done
      t.equal(got.join(''), pieces.map(({ text }) => text).join(''))
      t.equal(arrivals.bytes, 0)
      t.equal(emptied, got.length)
    }),
    { numRuns: 50 },
  )
})

t.test('chunks of any size come in order, in pieces that are few for their size', async t => {
  const size = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 20_000 }))
  await fc.assert(
    fc.asyncProperty(fc.array(size, { maxLength: 400 }), async sizes => {
      const chunks = sizes.map((size, at) => Buffer.alloc(size, at))
      const all = new CoalescedChunks()
      for (const chunk of chunks) all.add(chunk)
      const pieces = all.take()
      const bytes = sizes.reduce((sum, size) => sum + size, 0)
      t.ok(Buffer.concat(pieces).equals(Buffer.concat(chunks)))
      t.ok(pieces.length <= FEW + bytes / 2048, `${pieces.length} pieces of ${bytes} bytes`)
      t.equal(all.joined().length, 0, 'each byte once')
    }),
    { numRuns: 50 },
  )
})

t.test('bytes that come one by one are kept in few pieces while their reader waits', async t => {
  const arrivals = new ChunkQueue(() => {})
  for (let at = 0; at < 32 * 1024; at++) arrivals.push(Buffer.alloc(1))
  const chunks = await arrivals.take()
  t.ok(chunks!.length <= FEW + 2, `${chunks!.length}`)
  for (const text of ['a', 'b']) arrivals.push(Buffer.from(text))
  t.equal((await arrivals.take())!.length, 2, 'the chunks of a stream are not copied')
})
