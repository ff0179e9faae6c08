/** What the commands need of YAML, loaded by those that do. By name: a bundle gives a whole package another shape. */
export { parseDocument, stringify } from 'yaml'
