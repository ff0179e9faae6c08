/** Arguments shared by the commands of organizations' policies. */
import { s } from '../../core/schema.ts'

/** Not checked against the catalogue here. */
export const provider = s.string({ minLength: 1, maxLength: 64, description: 'the id of a provider' })
/** Of a rule or a provider key. */
export const id = s.string({ minLength: 1, description: 'an id, as the list shows it' })
/** Of models or providers; unknown ones are reported, not refused. */
export const names = s.array(s.string({ minLength: 1, maxLength: 256 }), { description: 'a list of names' })
