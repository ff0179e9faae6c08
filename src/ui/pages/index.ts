/** Every page by its path; `:id` stands for the id of a record. */
import type { Page } from '../layout.ts'
import { playground } from '../playground.ts'
import { keys, oneOrganization, organizations } from './accounts.ts'
import { confirm, perform } from './actions.ts'
import { model, models } from './catalogue.ts'
import { config } from './config.ts'
import { job, jobs } from './jobs.ts'
import { overview } from './overview.ts'
import { request, requests } from './requests.ts'
import { routes } from './routes.ts'
import { setup } from './setup.ts'
import { spend } from './spend.ts'

/** `get` shows a page, `post` changes something. */
export const pages: Readonly<Record<string, { readonly get?: Page; readonly post?: Page }>> = {
  '/ui': { get: overview },
  '/ui/spend': { get: spend },
  '/ui/requests': { get: requests },
  '/ui/requests/:id': { get: request },
  '/ui/models': { get: models },
  '/ui/models/:id': { get: model },
  '/ui/routes': { get: routes },
  '/ui/keys': { get: keys },
  '/ui/organizations': { get: organizations },
  '/ui/organizations/:id': { get: oneOrganization },
  '/ui/jobs': { get: jobs },
  '/ui/jobs/:id': { get: job },
  '/ui/config': { get: config },
  '/ui/playground': { get: playground },
  '/ui/setup': { get: setup },
  '/ui/confirm': { get: confirm, post: perform },
}
