/** All rows of the document. */
import type { Rows } from '../row.ts'
import { account } from './account.ts'
import { catalogue } from './catalogue.ts'
import { chat } from './chat.ts'
import { documents } from './documents.ts'
import { google } from './google.ts'
import { media } from './media.ts'
import { messages } from './messages.ts'
import { protocols } from './protocols.ts'
import { responses } from './responses.ts'

/** Rows by method and path of their endpoints. */
export const rows: Rows = {
  ...account,
  ...catalogue,
  ...chat,
  ...messages,
  ...responses,
  ...documents,
  ...media,
  ...google,
  ...protocols,
}
