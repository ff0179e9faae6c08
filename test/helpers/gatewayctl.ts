/** Runs `gatewayctl` in this process. */
import { run } from '../../src/cli/program.ts'

/** Returns the exit code and what was printed. The environment is empty. */
export async function gatewayctl(cwd: string, ...args: string[]) {
  const printed = { out: '', err: '' }
  const code = await run(args, {
    env: {},
    cwd,
    out: content => {
      printed.out += content.toString()
    },
    err: text => {
      printed.err += text
    },
  })
  return { code, ...printed }
}
