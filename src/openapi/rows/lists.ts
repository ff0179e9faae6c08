/** Lists that are read page by page. */
import { type Schema, s } from '../../core/schema.ts'
import { constant, orNull, type Parameter } from '../row.ts'

/** A page of values. */
export const listOf = <T>(item: Schema<T>) =>
  s.open({
    object: constant('list'),
    data: s.array(item),
    has_more: s.boolean(),
    first_id: orNull(s.string()),
    last_id: orNull(s.string()),
  })

/** Parameters of a page. */
export const cursor: Readonly<Record<string, Parameter>> = {
  limit: {
    description: 'The most entries of a page; 20 if absent.',
    schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
  },
  order: { description: 'Newest first, or oldest first.', schema: { enum: ['asc', 'desc'], default: 'desc' } },
  after: { description: 'The id of the entry before the page.' },
}
