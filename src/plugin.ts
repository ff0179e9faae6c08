/** The façade: the only module that plugins import. */
export { definitionIn, isReference, type PlacedTool, toolsAdded, toolsIn } from './codecs/messages/tools-in.ts'
export type {
  ChatRequest,
  ContentPart,
  FunctionCall,
  Message,
  ReasoningEffort,
  Tool,
  ToolCall,
} from './core/chat-request.ts'
export { budgetOf, effortOf, mayReason, turnsReasoningOff } from './core/effort.ts'
export type {
  Event,
  FinishReason,
  ImageDescription,
  Phase,
  ReasoningEvent,
  ToolEvent,
  WireFields,
} from './core/event.ts'
export type { Filter, FilterFactory } from './core/filter.ts'
export type { Plugin } from './core/plugin.ts'
export type { Reply } from './core/reply.ts'
export { s } from './core/schema.ts'
export type { CountForm, JobForm, Mapping, Provider, Target, Translator } from './core/translator.ts'
export { type Axis, CHARACTERS, estimateTokens, textSize, type Usage } from './core/usage.ts'
export type {
  CacheMark,
  Decoder,
  FilePart,
  Frame,
  JobReport,
  LoadedMedia,
  MediaByAddress,
  RealtimeForm,
  UpstreamJob,
  WireRequest,
} from './core/wire.ts'
export {
  ANSWER_BOUNDS,
  billed,
  checkAnswer,
  checkBlocks,
  checkEvents,
  entriesIn,
  excessiveArguments,
  MAX_CALL_CHARACTERS,
  MAX_CALLS,
  MAX_CHOICES,
  MAX_REASONING_BLOCKS,
  MAX_TEXT_CHARACTERS,
  parseAnswer,
  tooLongCalls,
  tooManyBlocks,
  tooManyCalls,
} from './json/answer-bounds.ts'
export { countIn, indexIn, isObject, type Json, jsonIn, listIn, objectIn, textIn, wellFormed } from './json/json.ts'
export { parseCalls } from './json/lossless.ts'
export { looseIn, withOpaque } from './json/opaque.ts'
export { type Bounds, CALL_BOUNDS, Count, MAX_LEVELS, Shape } from './json/shape.ts'
export { weigh } from './json/size.ts'
export { textKey, valueKey } from './json/text-key.ts'
export { errors, GatewayError } from './lib/error.ts'
export { perObject } from './lib/per-object.ts'
export { urlOf } from './lib/url.ts'
export { wavHead } from './lib/wav.ts'
export { aspectOf, imageClassOf, imageSizeOf, nearestAspect } from './media/image.ts'
export { isText, typeOfName } from './media/type.ts'
export { heardTokens } from './metering/audio.ts'
export type { Decision, DecisionRequest, DecisionResult, Question } from './operations/decisions/request.ts'
export type { EmbeddingRequest, Embeddings } from './operations/embeddings/request.ts'
export {
  type FoundImage,
  type FoundImages,
  ImagesDecoder,
  imageEvents,
  imageFanOut,
  type UnfinishedJob,
} from './operations/images/decoder.ts'
export {
  Base64Slice,
  type GeneratedImage,
  type GeneratedImages,
  type ImageEditRequest,
  type ImageInput,
  type ImageRequest,
  levelOf,
} from './operations/images/request.ts'
export { imageOutput } from './operations/images/tokens.ts'
export {
  isParts,
  type ModerationPart,
  type ModerationRequest,
  type ModerationResult,
  resultsWanted,
} from './operations/moderations/request.ts'
export { isAnnotated, type OcrRequest, type OcrResult } from './operations/ocr/request.ts'
export type { RealtimeRequest } from './operations/realtime/request.ts'
export { type RerankRequest, type RerankResult, searchUnits } from './operations/rerank/request.ts'
export { ANY_VOICE, type SpeechFormat, type SpeechRequest, speechFormats } from './operations/speech/request.ts'
export { speechOutput } from './operations/speech/spoken-tokens.ts'
export {
  needsSpeakers,
  needsTimes,
  type Segment,
  type Transcript,
  type TranscriptionRequest,
  type Word,
} from './operations/transcriptions/request.ts'
export { secondsFor, type VideoRequest, videoClassOf, videoRatioOf } from './operations/videos/request.ts'
export { Citations, type Place, placeIn } from './wire/citations.ts'
export { MAX_PARSED_RESULTS, resultText, resultWithErrorText, SHOWN_NEXT, shownFor } from './wire/results.ts'
export { seal, unseal } from './wire/seal.ts'
export {
  errorReader,
  guessStatus,
  type ProviderError,
  parseErrorBody,
  readProviderError,
  upstreamError,
  upstreamErrorFrom,
} from './wire/upstream-error.ts'
export {
  append,
  dataHeadOf,
  endsInAnswer,
  functionCalls,
  isBase64,
  newCallId,
  objectArguments,
  PendingToolCalls,
  parseDataUrl,
  parseFile,
  pathSegment,
  schemaInstruction,
  sniffImage,
  textOf,
  toolArguments,
  turnOf,
  typeOfBase64,
  withoutSpace,
} from './wire/wire.ts'
