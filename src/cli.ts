/** Entry of `gatewayctl`. */
import { run } from './cli/program.ts'

// A closed reader, such as `gatewayctl metrics | head`, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return
  process.stderr.write(`gatewayctl: cannot write the output: ${error.message}\n`)
  process.exit(1)
})

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  out: content => process.stdout.write(content),
  isTerminal: process.stdout.isTTY,
  err: text => process.stderr.write(text),
  ...(process.stderr.isTTY && { progress: (text: string) => process.stderr.write(text) }),
  run: async (...args) => (await import('./cli/start-tool.ts')).startTool(...args),
  in: async () => {
    if (process.stdin.isTTY) process.stderr.write('reading standard input; end it with Ctrl-D\n')
    process.stdin.setEncoding('utf8')
    let text = ''
    for await (const chunk of process.stdin as AsyncIterable<string>) text += chunk
    return text
  },
})
