/** Run by the build: parses YAML files for `src/config/parsed.ts`. */
import { readFile, writeFile } from 'node:fs/promises'
import { keyOf } from './config/parsed.ts'
import { Source } from './config/source.ts'
import { parseYamlFile } from './config/yaml.ts'

/** Writes the values of `files` to `target`. Throws a ConfigError for a file that is not valid. */
export async function writeParsed(files: readonly string[], target: string): Promise<void> {
  const parsed: Record<string, string> = {}
  for (const file of files) {
    const text = await readFile(file, 'utf8')
    parsed[keyOf(text)] = JSON.stringify(parseYamlFile(new Source(file, text)))
  }
  await writeFile(target, JSON.stringify(parsed))
}
