/** Chunks between a provider's socket and their reader: nothing is lost. */
import * as fc from 'fast-check'
import t from 'tap'
import { errors } from '../../src/core/error.ts'
import { ChunkQueue } from '../../src/upstream/chunk-queue.ts'

const textOf = (chunks: readonly Buffer[] | undefined) => chunks && Buffer.concat(chunks).toString()
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
