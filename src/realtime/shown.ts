/** Events of a provider as clients get them: with names of here, and settings as they have chosen them. */

import type { Target } from '../core/translator.ts'
import { isObject, type Json } from '../json/json.ts'
import { guessStatus, readProviderError, upstreamError } from '../wire/upstream-error.ts'
import type { RealtimeEvent } from './events.ts'
import type { Settings, SettingsContext } from './settings.ts'

/** `text` is the event as it came, which is passed on where nothing changes. */
export function shownEvent(event: RealtimeEvent, text: string, context: SettingsContext, settings: Settings): string {
  const { session, response } = event
  const failed = withShownError(event, context.target)
  if (failed !== event) return JSON.stringify(failed)
  const model = context.target.mapping.model.id
  if (isObject(session)) return JSON.stringify({ ...event, session: shownSession(session, context, settings) })
  if (isObject(response)) {
    const { status_details: details } = response
    const ended = isObject(details) ? withShownError(details, context.target) : details
    if (response.model !== undefined || ended !== details) {
      const named = { ...response, ...(response.model !== undefined && { model }) }
      return JSON.stringify({ ...event, response: ended === details ? named : { ...named, status_details: ended } })
    }
  }
  return text
}

/** Returns `holder` with the `error` that clients may read, or itself when it holds none. */
export function withShownError(holder: Readonly<Json>, target: Target): Readonly<Json> {
  const { error } = holder
  const reported = isObject(error) ? readProviderError({ error }) : undefined
  if (!reported || !isObject(error) || error.message === undefined) return holder
  const { message, detail, code } = upstreamError(guessStatus(reported, target), reported, target)
  if (detail === undefined) return { ...holder, error: { ...error, message } }
  return { ...holder, error: { ...error, message, type: 'server_error', code, param: null } }
}

function shownSession(session: Readonly<Json>, context: SettingsContext, settings: Settings): Json {
  const { target, hasInstructions } = context
  const shown: Json = { ...session, ...(session.model !== undefined && { model: target.mapping.model.id }) }
  // The holder of a secret is not the one that made it.
  if (hasInstructions) delete shown.instructions
  const { audio } = session
  const { transcription, createsResponses } = settings
  if (!isObject(audio) || !isObject(audio.input)) return shown
  const input: Json = { ...audio.input }
  if (isObject(input.turn_detection) && 'create_response' in input.turn_detection) {
    input.turn_detection = { ...input.turn_detection, create_response: createsResponses }
  }
  if (isObject(input.transcription) && transcription) {
    input.transcription = { ...input.transcription, model: transcription.model.id }
  }
  return { ...shown, audio: { ...audio, input } }
}
