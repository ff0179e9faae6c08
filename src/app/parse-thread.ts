/** A thread that parses one configuration file and ends; started by `src/config/large.ts`. */
import { parentPort, workerData } from 'node:worker_threads'
import { ConfigError } from '../config/error.ts'
import type { Parsed, ParseRequest } from '../config/large.ts'
import { Source } from '../config/source.ts'
import { parseYamlFile } from '../config/yaml.ts'

const { name, text, bounds, place } = workerData as ParseRequest

function parsed(): Parsed {
  try {
    if (place) return { position: new Source(name, text).find(place.path, place.at) }
    return { json: JSON.stringify(parseYamlFile(new Source(name, text), bounds)) }
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    const { position, message } = thrown
    return { fault: { position, message } }
  }
}

parentPort!.postMessage(parsed())
