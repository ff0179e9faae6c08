/** Whole folders that are replaced are watched on, and changes that go on keep nobody waiting. */
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { watchConfig } from '../../src/config/watch.ts'

const ways: Record<string, (folder: string, spare: string) => unknown> = {
  'renamed away, another one put in its place': (folder, spare) => {
    renameSync(folder, `${folder}.old`)
    renameSync(spare, folder)
  },
  'removed and copied': (folder, spare) => {
    rmSync(folder, { recursive: true })
    cpSync(spare, folder, { recursive: true })
  },
  'away for a while': async (folder, spare) => {
    renameSync(folder, `${folder}.old`)
    await sleep(600)
    renameSync(spare, folder)
  },
}
for (const [way, swap] of Object.entries(ways)) {
  t.test(`CF-03 a folder that is ${way} is watched on`, async t => {
    const folder = join(mkdtempSync(join(tmpdir(), 'swap-')), 'config', 'providers.d')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'a.yaml'), 'a')
    cpSync(folder, `${folder}.spare`, { recursive: true })
    writeFileSync(join(`${folder}.spare`, 'b.yaml'), 'b')
    let changes = 0
    const close = await watchConfig({
      paths: () => [folder],
      onChange: () => changes++,
      onError: thrown => t.fail('the watcher failed', { thrown }),
      debounceMs: 100,
    })
    t.teardown(close)
    await sleep(400)
    const before = changes
    await swap(folder, `${folder}.spare`)
    await sleep(800)
    t.ok(changes > before, 'the swap is seen')
    for (const name of ['c.yaml', 'd.yaml']) {
      const before = changes
      writeFileSync(join(folder, name), 'c')
      await sleep(500)
      t.ok(changes > before, `${name} is seen`)
    }
  })
}

t.test('changes that go on do not put off others', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'busy-'))
  const seen: number[] = []
  const close = await watchConfig({
    paths: () => [folder],
    onChange: () => seen.push(performance.now()),
    onError: thrown => t.fail('the watcher failed', { thrown }),
    debounceMs: 250,
  })
  t.teardown(close)
  await sleep(500)
  const start = performance.now()
  seen.length = 0
  for (let i = 0; i < 20; i++) {
    writeFileSync(join(folder, 'a.yaml'), `${i}`)
    await sleep(100)
  }
  t.ok(seen[0]! - start < 1000, `seen after ${Math.round(seen[0]! - start)} ms`)
})
