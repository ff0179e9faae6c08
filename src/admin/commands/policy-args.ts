/** Arguments shared by the commands of organizations' policies. */
import { s } from '../../core/schema.ts'

export const provider = s.string({ minLength: 1, maxLength: 64, description: 'the id of a provider' })
export const id = s.string({ minLength: 1, description: 'an id, as the list shows it' })
export const names = s.array(s.string({ minLength: 1, maxLength: 256 }), { description: 'a list of names' })
