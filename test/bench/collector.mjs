/** An OTLP collector that takes what it is sent and keeps none of it. */
import { listen } from './listen.mjs'

listen((_, res) => res.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 }).end('{}'))
