import type { IDataObject, IExecuteFunctions } from 'n8n-workflow'
import { NodeOperationError, jsonParse, tryToParseDateTime } from 'n8n-workflow'

export type Answers = Record<string, { value: string[] }>

interface Mapper {
  mappingMode: string
  value: IDataObject | null
  schema?: Array<{ id: string; type?: string; removed?: boolean }>
}

// Returns the answers of one item, in the form in which the service takes them.
export function readAnswers(context: IExecuteFunctions, index: number): Answers {
  switch (context.getNodeParameter('answersFrom', index)) {
    case 'modules':
      return fromModules(
        context.getNodeParameter('modules', index) as unknown as Mapper,
        context.getInputData()[index].json,
        context.getTimezone(),
      )
    case 'pairs': {
      const { pair } = context.getNodeParameter('pairs', index) as { pair?: Pair[] }
      return fromPairs(pair ?? [])
    }
    default:
      return fromJson(context, index)
  }
}

// Questions that are left empty are not answered. With automatic mapping, members of the item that are no questions of the
// campaign are left out; they may belong to another step.
function fromModules({ mappingMode, value, schema = [] }: Mapper, item: IDataObject, zone: string): Answers {
  const given = mappingMode === 'autoMapInputData' ? item : (value ?? {})
  const types = new Map(schema.filter(({ removed }) => !removed).map(({ id, type }) => [id, type]))
  const answers: Answers = {}
  for (const [name, answer] of Object.entries(given)) {
    if (types.size > 0 && !types.has(name)) continue
    if (answer === null || answer === undefined || answer === '') continue
    answers[name] = { value: valuesOf(answer, types.get(name), zone) }
  }
  return answers
}

interface Pair {
  name: string
  value: unknown
}

// A name that is given several times has several values, in this order.
function fromPairs(pairs: Pair[]): Answers {
  const answers: Answers = {}
  for (const { name, value } of pairs) {
    answers[name] = { value: [...(answers[name]?.value ?? []), ...valuesOf(value)] }
  }
  return answers
}

// Takes what the service takes, and shorter forms: {"name": "text"} and {"name": ["one", "two"]}.
function fromJson(context: IExecuteFunctions, index: number): Answers {
  const given = context.getNodeParameter('answersJson', index)
  const problem = (why: string) =>
    new NodeOperationError(context.getNode(), `The answers are not a JSON object: ${why}`, {
      description: 'Give an object with a field for each question, such as {"name": "Ada", "languages": ["English", "French"]}.',
      itemIndex: index,
    })
  let parsed: unknown = given
  if (typeof given === 'string') {
    try {
      parsed = jsonParse(given)
    } catch (error) {
      throw problem((error as Error).message)
    }
  }
  if (!isObject(parsed)) throw problem(`it is ${Array.isArray(parsed) ? 'an array' : String(parsed)}`)
  return Object.fromEntries(
    Object.entries(parsed).map(([name, answer]) => [
      name,
      isObject(answer) && 'value' in answer ? (answer as Answers[string]) : { value: valuesOf(answer) },
    ]),
  )
}

// Returns the values of an answer as the strings that the service wants.
function valuesOf(answer: unknown, type?: string, zone?: string): string[] {
  if (answer === null || answer === undefined) return []
  if (Array.isArray(answer)) return answer.filter((value) => value !== null && value !== undefined).map((value) => textOf(value, type, zone))
  if (type === 'array' && typeof answer === 'string' && answer.trim().startsWith('[')) {
    // What was written into the field of a question with several answers.
    const values = jsonParse<unknown>(answer, { fallbackValue: undefined })
    if (Array.isArray(values)) return valuesOf(values)
  }
  return [textOf(answer, type, zone)]
}

function textOf(value: unknown, type?: string, zone?: string): string {
  if (type === 'dateTime') return dayOf(value, zone)
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
}

// The service wants days; n8n's date picker and expressions give times. A time is the day that it is in the zone of the workflow.
function dayOf(value: unknown, zone?: string): string {
  const time = value instanceof Date || /^\d{4}-\d\d-\d\d[T ]\d\d/.test(String(value))
  if (!time) return String(value)
  return tryToParseDateTime(value instanceof Date ? value.toISOString() : String(value), zone).setZone(zone ?? 'utc').toISODate() ?? String(value)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
