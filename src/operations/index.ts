/** Every operation, a row each. */

import type { Operation } from '../core/operation.ts'
import type { Op } from '../core/ops.ts'
import { chat } from './chat/index.ts'
import { decisions } from './decisions/index.ts'
import { embeddings } from './embeddings/index.ts'
import { imageEdits, images } from './images/index.ts'
import { moderations } from './moderations/index.ts'
import { ocr } from './ocr/index.ts'
import { realtime } from './realtime/index.ts'
import { rerank } from './rerank/index.ts'
import { speech } from './speech/index.ts'
import { transcriptions, translations } from './transcriptions/index.ts'
import { videos } from './videos/index.ts'

/** The rows by name; planning, prices and the catalogue iterate over them. */
export const operations: { readonly [O in Op]: Operation<O> } = {
  chat,
  embeddings,
  moderations,
  ocr,
  rerank,
  decisions,
  speech,
  transcriptions,
  translations,
  images,
  image_edits: imageEdits,
  videos,
  realtime,
}
