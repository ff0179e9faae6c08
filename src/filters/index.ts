/** The filters that ship; gateway.yaml names them and puts them in order. */
import type { FilterFactory } from '../core/filter.ts'
import { admission } from './admission.ts'
import { auth } from './auth.ts'
import { billing } from './billing/index.ts'
import { cache } from './cache.ts'
import { healing } from './healing/index.ts'
import { ratelimit } from './ratelimit/index.ts'
import { reasoning } from './reasoning/index.ts'
import { responses } from './responses.ts'
import { route } from './route/index.ts'
import { telemetry } from './telemetry.ts'
import { translate } from './translate/index.ts'

/** Every shipped filter; the registry adds those of plugins. */
export const filters = [
  admission,
  auth,
  ratelimit,
  responses,
  cache,
  healing,
  reasoning,
  route,
  translate,
  billing,
  telemetry,
] as FilterFactory[]
