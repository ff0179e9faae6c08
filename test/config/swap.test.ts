/** Whole folders that are replaced are watched on, and changes that go on keep nobody waiting. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { watchConfig } from '../../src/config/watch.ts'

/** An empty folder that goes with its test. */
function temporary(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'watched-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** What stood in a folder whenever its watcher saw a change. */
async function watched(t: Test, folder: string) {
  let seen: string[] = []
  let told = () => {}
  const close = await watchConfig({
    paths: () => [folder],
    onChange: () => {
      seen = existsSync(folder) ? readdirSync(folder) : []
      told()
    },
    onError: thrown => t.fail('the watcher failed', { thrown }),
    debounceMs: 100,
  })
  t.teardown(close)
  /** True at last; the test's time ends what is never seen. */
  return async (fits: (names: readonly string[]) => boolean): Promise<true> => {
    while (!fits(seen)) {
      await new Promise<void>(resolve => {
        told = resolve
      })
    }
    return true
  }
}

const ways: Record<string, (folder: string, spare: string, until: Awaited<ReturnType<typeof watched>>) => unknown> = {
  'renamed away, another one put in its place': (folder, spare) => {
    renameSync(folder, `${folder}.old`)
    renameSync(spare, folder)
  },
  'removed and copied': (folder, spare) => {
    rmSync(folder, { recursive: true })
    cpSync(spare, folder, { recursive: true })
  },
  'away for a while': async (folder, spare, until) => {
    renameSync(folder, `${folder}.old`)
    await until(names => names.length === 0)
    renameSync(spare, folder)
  },
}
for (const [way, swap] of Object.entries(ways)) {
  t.test(`CF-03 a folder that is ${way} is watched on`, async t => {
    const folder = join(temporary(t), 'config', 'providers.d')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'a.yaml'), 'a')
    cpSync(folder, `${folder}.spare`, { recursive: true })
    writeFileSync(join(`${folder}.spare`, 'b.yaml'), 'b')
    const until = await watched(t, folder)
    writeFileSync(join(folder, 'first.yaml'), 'a')
    await until(names => names.includes('first.yaml'))
    await swap(folder, `${folder}.spare`, until)
    t.ok(await until(names => names.includes('b.yaml')), 'the swap is seen')
    for (const name of ['c.yaml', 'd.yaml']) {
      writeFileSync(join(folder, name), 'c')
      t.ok(await until(names => names.includes(name)), `${name} is seen`)
    }
  })
}

t.test('changes that go on do not put off others', async t => {
  const folder = temporary(t)
  const until = await watched(t, folder)
  let writes = 0
  const busy = setInterval(() => writeFileSync(join(folder, 'a.yaml'), `${writes++}`), 20)
  t.teardown(() => clearInterval(busy))
  await until(names => names.includes('a.yaml'))
  t.ok(writes > 0, 'they are seen while they go on')
})
