/** A part of a message holds one file, or says where it is, in one of several fields. */
import { errors } from '../lib/error.ts'

/**
 * Throws a 400 where more than one of `fields` says something: each is sent to providers of the client's wire, and the
 * others would be read by none of our checks. `fields` begins with the one to keep.
 */
export function assertOneSource(part: object, at: string, fields: readonly string[]): void {
  const [kept, other] = fields.filter(name => saysAnything(Reflect.get(part, name)))
  if (other === undefined) return
  const where = `${at}.${other}`
  const advice = `cannot be combined with ${at}.${kept}: a part has one file. Keep "${kept}" and leave out "${other}"`
  throw errors.invalidField(where, advice)
}

const saysAnything = (value: unknown): boolean => value != null && value !== ''
