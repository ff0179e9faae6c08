/** Tools that `gatewayctl launch` starts, with the settings each needs to use the gateway. */
import type { ListedModel } from '../admin/commands/catalogue.ts'

/** The gateway that a tool connects to. */
interface Connection {
  /** Address of the public listener, without a trailing slash. */
  readonly url: string
  readonly key: string
  readonly model: string | undefined
  readonly abilities: ReturnType<typeof abilitiesOf>
}

/** The command line that starts a tool. */
export interface Launch {
  readonly command: string
  /** Placed before the caller's arguments. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** A settings file, and the variable that holds its path. */
  readonly settings?: { readonly variable: string; readonly content: object }
}

/** How a tool is installed and started. */
export interface Tool {
  /** npm package that installs it. */
  readonly npm: string
  /** Its model when none is named. Absent where the tool's own models are those that gateways know. */
  readonly model?: string
  launch(connection: Connection): Launch
}

/** Variable from which codex and opencode read the key. */
const KEY = 'MODEL_GATEWAY_API_KEY'

/** Tokens of context that this tool assumes of every model. */
const GEMINI_CONTEXT = 1_048_576

/** Models by which it searches, compacts, corrects and checks, as its settings name them. */
const GEMINI_HELPERS = ['gemini-2.5', 'gemini-3', 'gemini-3.5']
  .map(name => `${name}-flash-base`)
  .concat('chat-compression-default', 'flash-lite')

/** Tools by the name that `launch` takes. */
export const tools = {
  codex: {
    npm: '@openai/codex',
    // Its own is the newest of its vendor, which a catalogue does not have yet.
    model: 'auto',
    launch({ url, key, model, abilities: { search, context } }) {
      const settings = {
        'model_providers.gateway.name': 'Model Gateway',
        'model_providers.gateway.base_url': `${url}/v1`,
        'model_providers.gateway.env_key': KEY,
        'model_providers.gateway.wire_api': 'responses',
        model_provider: 'gateway',
        ...(model !== undefined && { model }),
        // It offers its provider's search with every request, which a model without one refuses.
        ...(!search && { web_search: 'disabled' }),
        ...(context < 272_000 && { model_context_window: context }),
      }
      const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${JSON.stringify(value)}`])
      return { command: 'codex', args, env: { [KEY]: key } }
    },
  },
  claude: {
    npm: '@anthropic-ai/claude-code',
    launch: ({ url, key, model, abilities: { context } }) => ({
      command: 'claude',
      args: [],
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_AUTH_TOKEN: key,
        // Prevents the tool from also sending a key of another account.
        ANTHROPIC_API_KEY: '',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        // A fingerprint before the prompt, by which no two sessions share a provider's cache.
        CLAUDE_CODE_ATTRIBUTION_HEADER: '0',
        // Also for the tool's background requests.
        ...(model !== undefined && { ANTHROPIC_MODEL: model, ANTHROPIC_DEFAULT_HAIKU_MODEL: model }),
        // It takes a model that it does not know for one of a million tokens.
        ...(Number.isFinite(context) && { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(context) }),
      },
    }),
  },
  opencode: {
    npm: 'opencode-ai',
    model: 'auto',
    launch({ url, key, model = 'auto', abilities: { input, context, output } }) {
      const modalities = { input, output: ['text'] }
      const limit = Number.isFinite(context) && { limit: { context, output } }
      const gateway = {
        npm: '@ai-sdk/openai-compatible',
        name: 'Model Gateway',
        options: { baseURL: `${url}/v1`, apiKey: `{env:${KEY}}` },
        // Without a limit it never compacts, and it sends images only where the model is said to take them.
        models: { [model]: { name: model, attachment: input.length > 1, modalities, ...limit } },
      }
      const name = `gateway/${model}`
      const config = { provider: { gateway }, model: name, small_model: name }
      return { command: 'opencode', args: [], env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config), [KEY]: key } }
    },
  },
  gemini: {
    npm: '@google/gemini-cli',
    launch: ({ url, key, model, abilities: { context } }) => ({
      command: 'gemini',
      args: [],
      env: {
        GOOGLE_GEMINI_BASE_URL: url,
        GEMINI_API_KEY: key,
        ...(model !== undefined && { GEMINI_MODEL: model }),
      },
      // Without it, the tool refuses to run unattended at any address but Google's.
      settings: {
        variable: 'GEMINI_CLI_SYSTEM_SETTINGS_PATH',
        content: {
          security: { auth: { selectedType: 'gemini-api-key' } },
          ...(context < GEMINI_CONTEXT && {
            model: { compressionThreshold: context / 2 / GEMINI_CONTEXT },
          }),
          ...(model !== undefined && {
            modelConfigs: {
              customOverrides: GEMINI_HELPERS.map(name => ({ match: { model: name }, modelConfig: { model } })),
            },
          }),
        },
      },
    }),
  },
} as const satisfies Record<string, Tool>

/** A tool that `launch` can start. */
export type ToolName = keyof typeof tools

/** Sums up what live offers of the model that `name` means can do. A context that none states is infinite. */
export function abilitiesOf(name: string | undefined, models: readonly ListedModel[]) {
  const wanted = name?.replace(/:(?:floor|nitro)$/, '') ?? ''
  const offers = models.flatMap(({ id, aliases, providers }) => {
    const names = [id, ...aliases]
    return providers.filter(({ provider, externalId, live }) => {
      const pinned = [...names, externalId].map(one => `${provider}/${one}`)
      return live && (names.includes(wanted) || pinned.includes(wanted))
    })
  })
  const [image, pdf] = [offers.some(({ vision }) => vision), offers.some(({ fileInput }) => fileInput)]
  return {
    search: offers.some(({ webSearch }) => webSearch),
    input: ['text', ...(image ? ['image'] : []), ...(pdf ? ['pdf'] : [])],
    context: Math.max(0, ...offers.map(({ contextLength }) => contextLength ?? 0)) || Number.POSITIVE_INFINITY,
    output: Math.max(0, ...offers.map(({ maxOutput }) => maxOutput ?? 0)),
  }
}

/** The settings as lines for a shell. */
export function shellLines({ command, args, env, settings }: Launch): string {
  const lines = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`)
  if (settings) {
    const { variable, content } = settings
    lines.push(
      `export ${variable}="$HOME/.model-gateway.json"`,
      `echo ${quoted(JSON.stringify(content))} > "$${variable}"`,
    )
  }
  return `${[...lines, [command, ...args].map(quoted).join(' ')].join('\n')}\n`
}

const quoted = (text: string): string => (/^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
