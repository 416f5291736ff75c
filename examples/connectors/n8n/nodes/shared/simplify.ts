import type { IDataObject, INodeProperties } from 'n8n-workflow'

type Answers = Record<string, { value?: string[] | null }>

export const simplifyProperty: INodeProperties = {
  displayName: 'Simplify',
  name: 'simple',
  type: 'boolean',
  default: true,
  description: 'Whether to return a simplified version of the response instead of the raw data',
  hint: 'Answers become plain values under their names: one value, a list of several, or null for none',
}

// Returns a response with its answers as plain values: responses {"name": {"value": ["Ada"]}} becomes answers {"name": "Ada"}.
// Several values stay a list, and none is null.
export function simplifyResponse({ responses, ...rest }: IDataObject): IDataObject {
  // An event that was too large comes without them.
  if (!responses) return rest
  const answers = Object.entries(responses as Answers).map(([name, { value }]) => [name, plain(value ?? [])])
  return { ...rest, answers: Object.fromEntries(answers) as IDataObject }
}

// Returns an event whose response is simplified.
export function simplifyEvent(event: IDataObject): IDataObject {
  const data = event.data as IDataObject | undefined
  if (!data?.response) return event
  return { ...event, data: { ...data, response: simplifyResponse(data.response as IDataObject) } }
}

function plain(values: string[]): string | string[] | null {
  return values.length > 1 ? values : (values[0] ?? null)
}
