/** Events of `text/event-stream`, in plain code: an event ends at an empty line, the last one at the end of the text. */
export function eventsIn(body: string): { event: string; data: string }[] {
  const events: { event: string; data: string }[] = []
  let event = ''
  let data: string[] = []
  for (const line of [...body.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/), '']) {
    if (line === '') {
      if (data.length > 0) events.push({ event, data: data.join('\n') })
      event = ''
      data = []
    } else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
    else if (line.startsWith('event:')) event = line.slice(6).trim()
  }
  return events.filter(({ data }) => data.trim() !== '')
}
