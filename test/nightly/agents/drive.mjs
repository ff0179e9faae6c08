/**
 * Agents of npm, driven by lines of JSON as `drive.py` is; it runs in the folder where they are installed.
 */
import { createInterface } from 'node:readline'

const QUESTIONS = ['What is the weather?', 'And tomorrow?']
const shape = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const weather = (cities, { city }) => {
  cities.push(city)
  return 'cold'
}

const clients = {
  /** The client alone, without an agent around it. */
  async openai({ origin, key, model, chained, streams }, cities) {
    const { default: OpenAI } = await import('openai')
    const { responses } = new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0 })
    const tools = [{ type: 'function', name: 'weather', parameters: shape, strict: true }]
    const history = []
    const texts = []
    let previous
    for (const question of QUESTIONS) {
      let answer
      let given = [{ role: 'user', content: question }]
      while (given.length > 0) {
        history.push(...given)
        const state = chained ? { input: given, previous_response_id: previous } : { input: history }
        const body = { model, tools, reasoning: { effort: 'high' }, ...state }
        answer = await (streams ? responses.stream(body).finalResponse() : responses.create(body))
        history.push(...answer.output)
        previous = answer.id
        given = answer.output
          .filter(({ type }) => type === 'function_call')
          .map(({ call_id, arguments: args }) => ({
            type: 'function_call_output',
            call_id,
            output: weather(cities, JSON.parse(args)),
          }))
      }
      texts.push(answer.output_text)
    }
    return { texts, response: previous }
  },

  async '@openai/agents'({ origin, key, model, chained, streams }, cities) {
    const { Agent, OpenAIProvider, Runner, tool } = await import('@openai/agents')
    const { z } = await import('zod')
    const agent = new Agent({
      name: 'a',
      model,
      modelSettings: { reasoning: { effort: 'high' }, parallelToolCalls: true },
      tools: [
        tool({
          name: 'weather',
          description: 'Weather of a city',
          parameters: z.object({ city: z.string() }),
          execute: args => weather(cities, args),
        }),
      ],
    })
    const modelProvider = new OpenAIProvider({ baseURL: `${origin}/v1`, apiKey: key })
    const runner = new Runner({ modelProvider, tracingDisabled: true })
    const texts = []
    let history = []
    let previousResponseId
    let response
    for (const question of QUESTIONS) {
      const result = await runner.run(agent, [...history, { role: 'user', content: question }], {
        stream: streams,
        previousResponseId,
      })
      if (streams) {
        for await (const _ of result);
        await result.completed
      }
      texts.push(result.finalOutput)
      response = result.lastResponseId
      if (chained) previousResponseId = response
      else history = result.history
    }
    return { texts, response }
  },

  /** A chat that calls a function of the program by itself. */
  async '@google/genai'({ origin, key, model, streams }, cities) {
    const { GoogleGenAI, ThinkingLevel } = await import('@google/genai')
    const ai = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: origin } })
    const functionDeclarations = [{ name: 'weather', description: 'Weather of a city', parametersJsonSchema: shape }]
    const callable = {
      tool: async () => ({ functionDeclarations }),
      callTool: async calls =>
        calls.map(({ id, name, args }) => ({
          functionResponse: { id, name, response: { output: weather(cities, args) } },
        })),
    }
    const thinkingConfig = { includeThoughts: true, thinkingLevel: ThinkingLevel.HIGH }
    const chat = ai.chats.create({ model, config: { tools: [callable], thinkingConfig } })
    const texts = []
    for (const message of QUESTIONS) {
      let text = ''
      const answers = streams ? await chat.sendMessageStream({ message }) : [await chat.sendMessage({ message })]
      for await (const answer of answers) text += answer.text ?? ''
      texts.push(text)
    }
    return { texts }
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const { client, ...job } = JSON.parse(line)
  const cities = []
  try {
    console.log(JSON.stringify({ ...(await clients[client](job, cities)), cities }))
  } catch (thrown) {
    console.error(thrown)
    console.log(JSON.stringify({ error: String(thrown) }))
  }
}
