'use strict'
// The addresses below Node-RED's own that deliveries are sent to.

// Deliveries have at most a million bytes.
const LIMIT = 2 * 1024 * 1024

class TooLarge extends Error {}

// One handler serves all nodes, so that nothing is left in Express when a node goes.
class Receiver {
  #routes = new Map()
  #mounted = false
  #app

  constructor(app) {
    this.#app = app
  }

  // Gives what is posted to a path to accept(headers, body), which returns {status, text}. It returns how to end that, or
  // undefined when the path has been taken.
  add(path, accept) {
    if (this.#routes.has(path)) return undefined
    if (!this.#mounted) {
      this.#app.use((req, res, next) => this.#serve(req, res, next))
      this.#mounted = true
    }
    this.#routes.set(path, accept)
    return () => {
      if (this.#routes.get(path) === accept) this.#routes.delete(path)
    }
  }

  #serve(req, res, next) {
    const path = req.path.length > 1 ? req.path.replace(/\/$/, '') : req.path
    if (!this.#routes.has(path)) return next()
    if (req.method !== 'POST') {
      res.set('Allow', 'POST')
      return answer(res, 405, 'Events of the forms service are posted here.')
    }
    this.#take(req, res, path).catch(error => {
      answer(res, error instanceof TooLarge ? 413 : 400, error.message)
    })
  }

  async #take(req, res, path) {
    const body = await read(req)
    // Only now: the node may have gone while the body came.
    const accept = this.#routes.get(path)
    if (!accept) return answer(res, 503, 'This node is being changed.')
    const { status, text } = accept(req.headers, body)
    answer(res, status, text)
  }
}

function answer(res, status, text) {
  if (res.headersSent) return
  // What is left of a body that was not read would be taken for the next request.
  if (!res.req.readableEnded) res.set('Connection', 'close')
  res.status(status).type('text/plain').send(text)
}

// Returns the bytes of a request's body. The signature is over these.
function read(req) {
  if (req.readableEnded || req.body !== undefined) {
    return Promise.reject(new Error('Something in the settings of Node-RED (httpNodeMiddleware?) reads the bodies of requests ' +
      'before nodes do. Signatures cannot be checked then.'))
  }
  return new Promise((resolve, reject) => {
    const chunks = []
    let length = 0
    req.on('data', chunk => {
      length += chunk.length
      if (length > LIMIT) {
        req.removeAllListeners('data').pause()
        reject(new TooLarge(`A body may have ${LIMIT} bytes.`))
      } else {
        chunks.push(chunk)
      }
    })
    req.once('end', () => resolve(Buffer.concat(chunks, length)))
    req.once('error', reject)
    req.once('aborted', () => reject(new Error('The body broke off.')))
  })
}

// Returns a path as routes have it, or undefined if it cannot be one.
function cleanPath(text) {
  const path = '/' + String(text).trim().replace(/^\/+|\/+$/g, '')
  return /^(\/[A-Za-z0-9._~-]+)+$/.test(path) ? path : undefined
}

module.exports = { Receiver, cleanPath }
