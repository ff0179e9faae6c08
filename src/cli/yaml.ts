/** The YAML functions that commands load on demand. Named exports keep the bundle small. */
export { parseDocument, stringify } from 'yaml'
