'use strict'
// The addresses below Node-RED's own that deliveries are sent to.
//
// With the settings that Node-RED generates, the editor is at / and parses the bodies of all requests before the nodes see
// them, and the signature is over the bytes. So the bytes are taken where requests enter, at the HTTP server, before anybody
// else; and only those of requests to our own addresses.

// Deliveries have at most a million bytes.
const LIMIT = 2 * 1024 * 1024

class TooLarge extends Error {}

// One handler serves all nodes, so that nothing is left in Express when a node goes.
class Receiver {
  #routes = new Map()
  #mounted = false
  #app
  #server
  #root
  // The bodies of requests under way: promises of Buffers.
  #bodies = new WeakMap()
  #enter = req => this.#collect(req)

  // app is the Express application of HTTP nodes, which is at the path root of server. An embedding program may have no server
  // that Node-RED knows of; bodies are then read in app.
  constructor(app, { server, root = '/' } = {}) {
    this.#app = app
    this.#server = typeof server?.prependListener === 'function' ? server : undefined
    this.#root = `/${root || ''}/`.replace(/\/+/g, '/').slice(0, -1)
  }

  // Gives what is posted to a path to accept(headers, body), which returns {status, text} or a promise of it. It returns how
  // to end that, or undefined when the path has been taken.
  add(path, accept) {
    if (this.#routes.has(path)) return undefined
    if (!this.#mounted) {
      this.#app.use((req, res, next) => this.#serve(req, res, next))
      this.#mounted = true
    }
    if (this.#routes.size === 0) this.#server?.prependListener('request', this.#enter)
    this.#routes.set(path, accept)
    return () => {
      if (this.#routes.get(path) !== accept) return
      this.#routes.delete(path)
      if (this.#routes.size === 0) this.#server?.removeListener('request', this.#enter)
    }
  }

  #collect(req) {
    const path = withoutSlash(req.url.split('?', 1)[0])
    if (!path.startsWith(this.#root) || !this.#routes.has(path.slice(this.#root.length))) return
    const body = read(req)
    // It fails unseen when the request gets no further than to something before the nodes.
    body.catch(() => {})
    this.#bodies.set(req, body)
    // The sign of body-parser, Node-RED's own, that a body has been taken.
    req._body = true
  }

  #serve(req, res, next) {
    const path = withoutSlash(req.path)
    if (!this.#routes.has(path)) return next()
    if (req.method !== 'POST') {
      res.set('Allow', 'POST')
      return answer(res, 405, 'POST events of the forms service here.')
    }
    this.#take(req, res, path).catch(error => {
      answer(res, error instanceof TooLarge ? 413 : 400, error.message)
    })
  }

  async #take(req, res, path) {
    const body = await (this.#bodies.get(req) ?? read(req))
    // Only now: the node may have gone while the body came.
    const accept = this.#routes.get(path)
    if (!accept) return answer(res, 503, 'This node is being changed.')
    const { status, text } = await accept(req.headers, body)
    answer(res, status, text)
  }
}

const withoutSlash = path => (path.length > 1 ? path.replace(/\/$/, '') : path)

function answer(res, status, text) {
  if (res.headersSent) return
  // What is left of a body that was not read would be taken for the next request.
  if (!res.req.readableEnded) res.set('Connection', 'close')
  res.status(status).type('text/plain').send(text)
}

// Returns the bytes of a request's body. Others may read them at the same time.
function read(req) {
  // null: nobody has begun to read.
  if (req.readableFlowing !== null) {
    return Promise.reject(new Error('The program that embeds Node-RED reads the bodies of requests before nodes do, so the ' +
      'signature can\'t be checked. Give its HTTP server to RED.init(), or exempt this path.'))
  }
  return new Promise((resolve, reject) => {
    let chunks = []
    let length = 0
    req.on('data', chunk => {
      length += chunk.length
      if (length <= LIMIT) return chunks.push(chunk)
      chunks = []
      reject(new TooLarge(`A body may have ${LIMIT} bytes.`))
    })
    req.once('end', () => resolve(Buffer.concat(chunks)))
    req.once('error', reject)
    req.once('aborted', () => reject(new Error('The body is incomplete.')))
  })
}

// Returns a path as routes have it, or undefined if it cannot be one.
function cleanPath(text) {
  const path = '/' + String(text).trim().replace(/^\/+|\/+$/g, '')
  return /^(\/[A-Za-z0-9._~-]+)+$/.test(path) ? path : undefined
}

module.exports = { Receiver, cleanPath }
