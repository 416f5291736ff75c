import type { IDataObject, IN8nHttpFullResponse, JsonObject, NodeApiError } from 'n8n-workflow'

type Options = ConstructorParameters<typeof NodeApiError>[2]

interface Fault {
  pointer?: string
  parameter?: string
  detail?: string
}

// Returns the arguments of a NodeApiError for an answer that refuses: the title, the detail and each of the errors of the
// service's problem document (RFC 9457), in its own words.
export function problemOf(answer: IN8nHttpFullResponse, itemIndex?: number): [JsonObject, Options] {
  const { statusCode, headers } = answer
  const problem = asObject(answer.body)
  const message = [problem.title ?? `The service returned ${statusCode}`, problem.detail]
    .filter(Boolean)
    .join(': ')
  const faults = Array.isArray(problem.errors) ? (problem.errors as Fault[]) : []
  const lines = faults.map(({ pointer, parameter, detail }) => `${pointer ?? parameter}: ${detail}`)
  if (!problem.title) lines.push(hintFor(statusCode, String(headers.location ?? '')))
  if (headers['retry-after']) lines.push(`Try again in ${headers['retry-after']} seconds.`)
  if (problem.requestId) lines.push(`Request ${problem.requestId}, code ${problem.code}`)
  return [
    { ...problem, statusCode } as JsonObject,
    { message, description: lines.join('\n'), httpCode: String(statusCode), itemIndex },
  ]
}

function hintFor(statusCode: number, location: string): string {
  if (statusCode >= 300 && statusCode < 400) {
    return `The service redirects to ${location || 'another address'}. Set the base URL of the credential to the final address.`
  }
  return 'The reply is not from the service. Check the base URL of the credential.'
}

function asObject(body: unknown): IDataObject {
  return body && typeof body === 'object' ? (body as IDataObject) : {}
}
