/** Every page by its path; `:id` stands for the id of a record. */
import type { Page } from '../page.ts'
import { overview } from './overview.ts'
import { request, requests } from './requests.ts'

/** `get` shows a page, `post` changes something or sends a form. */
export const pages: Readonly<Record<string, { readonly get?: Page; readonly post?: Page }>> = {
  '/ui': { get: overview },
  '/ui/requests': { get: requests },
  '/ui/requests/:id': { get: request },
}
