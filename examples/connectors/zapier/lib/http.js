'use strict'

// Requests to the service. All of them go through call(), which is the only place that knows the key: requests to other
// hosts, for a file that is to be uploaded, never carry it.

// Returns the address of the service without a slash at its end. The key must not travel in the clear, so that http is
// only for a service on the same machine, as in tests.
function baseUrl(z, bundle) {
  const text = String(bundle.authData.baseUrl ?? '').trim()
  let url
  try {
    url = new URL(text)
  } catch {
    throw new z.errors.Error(`The address of the service is not a URL: ${JSON.stringify(text)}. Example: https://forms.example.com`,
      'invalid_base_url')
  }
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))) {
    throw new z.errors.Error(`The address of the service must begin with https://, but is ${JSON.stringify(text)}.`,
      'invalid_base_url')
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new z.errors.Error('The address of the service must have no user, no "?" and no "#".', 'invalid_base_url')
  }
  return (url.origin + url.pathname).replace(/\/+$/, '').replace(/\/v1$/, '')
}

function isLoopback(host) {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host)
}

// Makes a request and returns Zapier's response; its data is the JSON of the answer. path begins with /v1 and has to be
// encoded. The answer to a refusal is an error with the service's words, which also has the problem as a member.
//
// A body that is an object is sent as JSON. It is made a string here since Zapier takes {{...}} out of objects, and a
// comment may well have that. The query is written here, and not merged with anything, for the same reason.
async function call(z, bundle, method, path, { query = {}, body, headers = {}, ...options } = {}) {
  const json = isPlain(body)
  const response = await z.request({
    url: baseUrl(z, bundle) + path + queryString(query),
    method,
    headers: {
      Accept: 'application/json',
      Authorization: `Bearer ${String(bundle.authData.apiKey ?? '').trim()}`,
      ...(json && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    body: json ? JSON.stringify(body) : body,
    merge: false,
    redirect: 'manual',
    skipThrowForStatus: true,
    ...options,
  })
  if (response.status >= 200 && response.status < 300) return response
  throw await refusal(z, response)
}

// A stream has its own prototype.
function isPlain(body) {
  return body != null && Object.getPrototypeOf(body) === Object.prototype
}

function queryString(query) {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') parameters.append(name, value)
  }
  const text = parameters.toString()
  return text && `?${text}`
}

// Returns the error for a response that is not a success.
async function refusal(z, response) {
  const { status } = response
  if (status >= 300 && status < 400) {
    return new z.errors.Error(`The service sent a redirect (${status}) to ${response.headers.get('location')}. ` +
      'Correct the address of the service in the connection.', 'redirect', status)
  }
  const problem = parse(response.request.raw ? await response.text() : response.content)
  const message = describe(problem, status)
  return Object.assign(errorFor(z, response, problem, message), { problem })
}

function errorFor(z, response, problem, message) {
  switch (response.status) {
    case 401:
      return new z.errors.ExpiredAuthError(`${message} Reconnect with an API key that is valid.`)
    case 429:
    case 503:
      // Zapier does the step again after so many seconds.
      return new z.errors.ThrottledError(message, seconds(response.headers.get('retry-after')))
    default:
      return new z.errors.Error(message, problem.code, response.status)
  }
}

function parse(content) {
  try {
    const problem = JSON.parse(content)
    return problem && typeof problem === 'object' ? problem : {}
  } catch {
    return {}
  }
}

function seconds(text) {
  const number = Number.parseInt(text, 10)
  return number >= 1 ? number : 60
}

// Returns the service's own words: title, detail and each of errors.
function describe({ title, detail, errors, requestId }, status) {
  if (!title) return `The address of the service answered ${status}, but not as the service does. Check the address in the connection.`
  const lines = [detail ? `${title}: ${detail}` : `${title}.`]
  for (const { pointer, parameter, detail: what } of Array.isArray(errors) ? errors : []) {
    lines.push(`${pointer ?? parameter ?? ''} ${what ?? ''}`.trim())
  }
  if (requestId) lines.push(`(request ${requestId})`)
  return lines.join('\n')
}

module.exports = { baseUrl, call }
