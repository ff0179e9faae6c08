/** A thread that parses one configuration file and ends; `src/config/large.ts` starts it. */
import { parentPort, workerData } from 'node:worker_threads'
import { ConfigError } from './config/error.ts'
import type { Parsed } from './config/large.ts'
import { Source } from './config/source.ts'
import { parseYamlFile } from './config/yaml.ts'

const { name, text } = workerData as { name: string; text: string }

function parsed(): Parsed {
  try {
    return { json: JSON.stringify(parseYamlFile(new Source(name, text))) }
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    const { line, column, message } = thrown
    return { fault: { line, column, message } }
  }
}

parentPort!.postMessage(parsed())
