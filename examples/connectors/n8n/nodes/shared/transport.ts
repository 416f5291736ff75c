import type {
  IDataObject,
  IExecuteFunctions,
  IHookFunctions,
  IHttpRequestMethods,
  IHttpRequestOptions,
  ILoadOptionsFunctions,
  IN8nHttpFullResponse,
  IPollFunctions,
  JsonObject,
} from 'n8n-workflow'
import { NodeApiError, NodeOperationError, sleep } from 'n8n-workflow'

import { problemOf } from './problem'

export const credential = 'formsvcApi'

// A request that is refused for the moment is made again so often, and only where it need not wait longer.
const repetitions = 2
const longestWaitSeconds = 30

type Context = IExecuteFunctions | IHookFunctions | ILoadOptionsFunctions | IPollFunctions

export interface Options {
  query?: IDataObject
  headers?: IDataObject
  // JSON, or with a content-type header the bytes themselves.
  body?: IHttpRequestOptions['body']
  // For bodies that can be read only once, makes one for each attempt.
  makeBody?: () => Promise<IHttpRequestOptions['body']>
  // The body of the answer is wanted as a stream.
  stream?: boolean
  // Statuses other than 2xx that are no errors here.
  accept?: number[]
  itemIndex?: number
}

export interface Page<T> {
  items: T[]
  nextCursor: string | null
}

// Makes a request of the service and returns the whole answer. What the service refuses becomes a NodeApiError with its
// own words. After 429 and 503, and a conflict that passes, it waits as long as Retry-After says and tries again.
export async function request(
  context: Context,
  method: IHttpRequestMethods,
  path: string,
  options: Options = {},
): Promise<IN8nHttpFullResponse> {
  const baseURL = await baseUrl(context)
  for (let attempt = 0; ; attempt++) {
    const answer = await send(context, baseURL, method, path, options)
    const { statusCode } = answer
    if ((statusCode >= 200 && statusCode < 300) || options.accept?.includes(statusCode)) return answer
    const seconds = retryAfter(answer)
    if (seconds === undefined || attempt === repetitions) {
      if (options.stream) answer.body = await textOf(context, answer)
      throw refusalOf(context, answer, options.itemIndex)
    }
    await sleep(seconds * 1000)
  }
}

// Returns the error for an answer that refuses. Its context has the errors of the service's problem document.
export function refusalOf(context: Context, answer: IN8nHttpFullResponse, itemIndex?: number): NodeApiError {
  const refusal = new NodeApiError(context.getNode(), ...problemOf(answer, itemIndex))
  refusal.context.errors = (answer.body as IDataObject | undefined)?.errors
  return refusal
}

// Returns the body of a JSON answer.
export async function json<T = IDataObject>(
  context: Context,
  method: IHttpRequestMethods,
  path: string,
  options: Options = {},
): Promise<T> {
  return (await request(context, method, path, options)).body as T
}

// Returns the items of a list: up to limit, or all of them.
export async function list<T = IDataObject>(
  context: Context,
  path: string,
  query: IDataObject = {},
  limit = Infinity,
  itemIndex?: number,
): Promise<T[]> {
  const items: T[] = []
  let cursor: string | null = null
  do {
    const page: Page<T> = await json<Page<T>>(context, 'GET', path, {
      query: { ...query, limit: Math.min(limit - items.length, 200), ...(cursor && { cursor }) },
      itemIndex,
    })
    items.push(...page.items)
    cursor = page.nextCursor
  } while (cursor && items.length < limit)
  return items
}

async function send(
  context: Context,
  baseURL: string,
  method: IHttpRequestMethods,
  path: string,
  { query, headers, body, makeBody, stream, itemIndex }: Options,
): Promise<IN8nHttpFullResponse> {
  const content = makeBody ? await makeBody() : body
  try {
    return (await context.helpers.httpRequestWithAuthentication.call(context, credential, {
      method,
      baseURL,
      url: path,
      qs: query,
      arrayFormat: 'repeat',
      headers,
      body: content,
      json: !stream,
      ...(stream && { encoding: 'stream' as const }),
      returnFullResponse: true,
      // They are told from the answer, where the service's words are.
      ignoreHttpStatusErrors: true,
      // The key must not go to another address, nor a POST become a GET.
      disableFollowRedirect: true,
    })) as IN8nHttpFullResponse
  } catch (error) {
    // The service was not reached.
    const failure = new NodeApiError(context.getNode(), error as JsonObject, { itemIndex })
    failure.context.itemIndex = itemIndex
    throw failure
  }
}

// Returns the address of the service, without a slash at its end.
export async function baseUrl(context: Context): Promise<string> {
  const { baseUrl: url } = await context.getCredentials<{ baseUrl: string }>(credential)
  const trimmed = url.trim().replace(/\/+$/, '')
  if (!/^https?:\/\/[^/]+/i.test(trimmed)) {
    throw new NodeOperationError(context.getNode(), 'The base URL of the credential is not a URL', {
      description: `It must begin with https:// or http://, such as https://forms.example.com, and is "${url}".`,
    })
  }
  return trimmed
}

// Returns after how many seconds a refused request may be made again, if that is soon.
function retryAfter({ statusCode, headers }: IN8nHttpFullResponse): number | undefined {
  if (![409, 429, 503].includes(statusCode)) return undefined
  const value = String(headers['retry-after'] ?? '')
  if (!/^\d+$/.test(value)) return undefined
  const seconds = Number(value)
  return seconds <= longestWaitSeconds ? seconds : undefined
}

async function textOf(context: Context, { body }: IN8nHttpFullResponse): Promise<JsonObject | string> {
  if (!('binaryToString' in context.helpers)) return ''
  const text = await context.helpers.binaryToString(body as never)
  try {
    return JSON.parse(text) as JsonObject
  } catch {
    return text
  }
}
