// What the tests have in common: the app in Zapier's test runner, and stand-ins for what Zapier's servers do.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { eventually, startService } from '../../testing/service.mjs'

// Makes the checks of zapier-platform-core on what the app returns fail, as in Zapier's own tests.
process.env.NODE_ENV = 'test'

// As Zapier does. (The package's ES module needs syntax newer than some versions of Node 18 have.)
const require = createRequire(import.meta.url)
export const App = require('../index.js')
export const core = require('zapier-platform-core')
export const schema = require('zapier-platform-schema')

// Starts the service and a runner of the app. run() executes one of the app's functions, or what is at a path like
// "creates.add_comment.operation.perform", with a connection to the service.
export async function start(t, database, ...flags) {
  const service = await startService(database, ...flags)
  t.after(() => service.stop())
  const tester = core.createAppTester(App)
  const run = (what, bundle = {}, key = service.key) => tester(at(what), {
    inputData: {}, meta: {}, ...bundle, authData: { baseUrl: service.url, apiKey: key, ...bundle.authData },
  })
  return { service, run }
}

export function at(what) {
  return typeof what === 'string' ? what.split('.').reduce((from, name) => from[name], App) : what
}

// Starts an HTTP server on loopback, answer(request, body, response) may be async. It ends with the test.
export async function listen(t, answer) {
  const server = createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    await answer(request, Buffer.concat(chunks), response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${server.address().port}`
}

// Starts the place where Zapier receives the deliveries for one Zap. next() waits for one that was not taken yet.
export async function zapUrl(t, status = () => 200) {
  const deliveries = []
  const url = `${await listen(t, (request, body, response) => {
    deliveries.push({ headers: request.headers, body })
    response.writeHead(status()).end('{"status":"success"}')
  })}/hooks/standard/1/${Math.random().toString(36).slice(2)}/`
  return { url, deliveries, next: () => eventually('a delivery', () => deliveries.shift()) }
}

// Returns what Zapier makes of a delivery for the app: the names of headers get a prefix and capitals.
export function received({ headers, body }) {
  const renamed = Object.entries(headers).map(([name, value]) => {
    const capitals = name.replace(/(^|-)[a-z]/g, text => text.toUpperCase())
    return [/^content-/.test(name) ? capitals : `Http-${capitals}`, value]
  })
  const content = body.toString('utf8')
  return {
    rawRequest: { method: 'POST', querystring: '', headers: Object.fromEntries(renamed), content },
    cleanedRequest: JSON.parse(content),
  }
}

// Returns the names of all members, at every depth. What a module answers is the user's, and so is what has no members.
export function shape(value, path = '') {
  if (path.endsWith('.responses') || value === null || typeof value !== 'object') return [path]
  if (Array.isArray(value)) return [`${path}[]`]
  return Object.keys(value).sort().flatMap(key => shape(value[key], `${path}.${key}`))
}

// Runs attempt and returns the error that it must end with.
export async function failure(attempt) {
  try {
    await attempt
  } catch (error) {
    return error
  }
  return assert.fail('there was no error')
}

// Returns the message, which Zapier's errors carry as JSON.
export function message(error) {
  try {
    return JSON.parse(error.message).message
  } catch {
    return error.message
  }
}
