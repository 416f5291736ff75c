'use strict'
// Requests to the service, and how its refusals become errors.

const { setTimeout: sleep } = require('timers/promises')

const MINUTE = 60_000
// How long a request may take in all. A file may be large and the line slow.
const TIMEOUT = 2 * MINUTE
const FILE_TIMEOUT = 15 * MINUTE
// How often a request is made, and how long to wait in all, before its node gives up.
const ATTEMPTS = 7
const LONGEST_WAIT = MINUTE

// What went wrong with a request. `problem` is the service's own document about it (RFC 9457), when there is one;
// `unsettled` tells that nobody knows whether the service did what it was asked to, or that it may do so if asked again.
class ServiceError extends Error {
  constructor(message, { status, problem, unsettled = false, retryAfter, passing = false, cause } = {}) {
    super(message, cause && { cause })
    this.name = 'ServiceError'
    this.status = status
    this.code = problem?.code
    this.problem = problem
    this.unsettled = unsettled
    this.retryAfter = retryAfter
    this.passing = passing
  }

  // As people read it, and as Node-RED shows it.
  toString() {
    return this.message
  }
}

// Returns the address of the service without a slash at its end, or fails with what is wrong with it.
function checkBaseUrl(text) {
  const trimmed = String(text ?? '').trim()
  if (!trimmed) throw new ServiceError('The base URL of the service is missing in the account.')
  let url
  try {
    url = new URL(trimmed)
  } catch {
    throw new ServiceError(`The base URL of the service is not a URL: ${trimmed}`)
  }
  if (!/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new ServiceError('The base URL of the service must begin with http:// or https://, without user name, query and #.')
  }
  return url.href.replace(/\/+$/, '').replace(/\/v1$/, '')
}

// One account of the service.
class Client {
  constructor({ baseUrl, apiKey }) {
    this.baseUrl = checkBaseUrl(baseUrl)
    this.apiKey = String(apiKey ?? '').trim()
    if (!this.apiKey) throw new ServiceError('The API key is missing in the account.')
    if (!/^[!-~]+$/.test(this.apiKey)) throw new ServiceError('The API key has an invalid character.')
  }

  // Makes a request, and again while that may help, and returns {status, headers, body}: body is decoded JSON, or a Buffer
  // when request.binary is set. A request is {method, path, query, json | bytes, headers, binary}; it must be safe to repeat.
  async send(request, { signal, attempts = ATTEMPTS, onRetry = () => {} } = {}) {
    let waited = 0
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(request, signal)
      } catch (error) {
        const wait = pause(error, attempt)
        if (!error.passing || attempt >= attempts || waited + wait > LONGEST_WAIT) throw error
        onRetry(error, wait)
        waited += wait
        await sleep(wait, undefined, { signal })
      }
    }
  }

  async #once({ method, path, query, json, bytes, headers = {}, binary = false }, signal) {
    const url = this.baseUrl + path + encodeQuery(query)
    const within = deadline(bytes || binary ? FILE_TIMEOUT : TIMEOUT, signal)
    try {
      const answer = await fetch(url, {
        method,
        headers: {
          accept: binary ? '*/*' : 'application/json',
          ...(json && { 'content-type': 'application/json' }),
          ...headers,
          authorization: `Bearer ${this.apiKey}`,
        },
        body: json ? JSON.stringify(json) : bytes,
        // A redirect would turn a POST into a GET or take the key elsewhere.
        redirect: 'manual',
        signal: within.signal,
      })
      const body = Buffer.from(await answer.arrayBuffer())
      if (!answer.ok) throw refusal(answer, body, url)
      return { status: answer.status, headers: answer.headers, body: binary ? body : decode(answer, body, url) }
    } catch (error) {
      throw signal?.aborted || error instanceof ServiceError ? error : unreachable(error, url, within.expired)
    } finally {
      within.end()
    }
  }
}

// Returns a signal that aborts with another one and after a time. (AbortSignal.any is not in Node 18.)
function deadline(milliseconds, signal) {
  const controller = new AbortController()
  const within = { signal: controller.signal, expired: false }
  const abort = () => controller.abort(signal.reason)
  const timer = setTimeout(() => {
    within.expired = true
    controller.abort()
  }, milliseconds)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort)
  within.end = () => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
  return within
}

function encodeQuery(query = {}) {
  const given = Object.entries(query).flatMap(([name, value]) => [value].flat().map(one => [name, one]))
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
  return given.length ? `?${new URLSearchParams(given)}` : ''
}

function decode(answer, body, url) {
  if (!body.length) return null
  if (isJSON(answer)) {
    try {
      return JSON.parse(body)
    } catch (error) {
      throw new ServiceError(`The reply of ${url} is incomplete: ${error.message}`, { unsettled: true, passing: true })
    }
  }
  throw new ServiceError(`The reply of ${url} is not from the forms service. Check the base URL of the account.`)
}

const isJSON = answer => /\bjson\b/.test(answer.headers.get('content-type') ?? '')

// Returns the error for an answer that is none of 2xx.
function refusal(answer, body, url) {
  let problem
  try {
    const document = isJSON(answer) && JSON.parse(body)
    if (typeof document?.title === 'string') problem = document
  } catch {
    // Then it is no problem document.
  }
  const { status } = answer
  const retryAfter = seconds(answer.headers.get('retry-after'))
  // 502 and 504 without a problem document come from a proxy that does not reach the service.
  const passing = status === 429 || status === 503 || (!problem && (status === 502 || status === 504)) ||
    problem?.code === 'idempotency_in_flight'
  const unsettled = passing || status >= 500 || status === 401 || status === 403
  return new ServiceError(problem ? explain(problem, retryAfter) : strange(answer, url),
    { status, problem, retryAfter, passing, unsettled })
}

// Returns the service's own words.
function explain(problem, retryAfter) {
  const lines = [problem.detail ? `${problem.title}: ${problem.detail}` : problem.title]
  for (const fault of Array.isArray(problem.errors) ? problem.errors : []) {
    lines.push(fault.pointer ? `${fault.pointer}: ${fault.detail}` : `${fault.detail}`)
  }
  if (retryAfter !== undefined) lines.push(`Try again after ${retryAfter} seconds.`)
  if (problem.requestId) lines.push(`Request ${problem.requestId}`)
  return lines.join('\n')
}

function strange(answer, url) {
  const to = answer.headers.get('location')
  return `${url} answered ${answer.status}${to ? ` and points to ${to}` : ''}. Check the base URL of the account.`
}

// Returns what a Retry-After header says in seconds, or undefined.
function seconds(header) {
  if (!header) return undefined
  const time = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1000)
  return Number.isFinite(time) ? Math.max(0, time) : undefined
}

// Returns the error for a request without an answer.
function unreachable(error, url, expired) {
  // fetch fails without a cause when the request itself is wrong, and that stays so.
  if (!error.cause && !expired) return new ServiceError(`The request to ${url} cannot be sent: ${error.message}`)
  const why = expired ? 'it took too long' : error.cause.message || error.cause.code || error.message
  return new ServiceError(`${new URL(url).origin} cannot be reached: ${why}`,
    { cause: error, unsettled: true, passing: true })
}

// Returns how many milliseconds to wait after a failed attempt: longer each time, and never less than the service asks for.
// Some chance keeps nodes that failed together from coming back together.
function pause(error, attempt) {
  const usual = 500 * 2 ** (attempt - 1)
  return Math.max(usual, (error.retryAfter ?? 0) * 1000) * (1 + Math.random() / 5)
}

module.exports = { Client, ServiceError, checkBaseUrl }
