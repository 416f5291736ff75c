'use strict'
// Which requests are repetitions of others.
//
// The service does a POST once however often it is sent with the same Idempotency-Key. So the key must stay when a message
// comes again because it failed, and differ when the same thing is to be done twice. Node-RED gives no name to a step of a
// flow's run: copies and parts of a message may all have the same _msgid. Hence the key is made of the node, the _msgid, the
// whole request, and a number: how many equal requests had been settled or were under way already. A request whose outcome is
// not known gives its number back, and whoever repeats it gets the number again.

const { createHash } = require('crypto')

class IdempotencyKeys {
  #nodeId
  #limit
  #counts = new Map()

  constructor(nodeId, limit = 1000) {
    this.#nodeId = nodeId
    this.#limit = limit
  }

  // Returns the key of a request, and what to call with the error, or nothing, that it ended with.
  take(msgid, request) {
    const base = this.#base(msgid, request)
    const count = this.#counts.get(base) ?? { used: 0, free: [] }
    this.#counts.delete(base)
    this.#counts.set(base, count)
    if (this.#counts.size > this.#limit) this.#counts.delete(this.#counts.keys().next().value)
    const number = count.free.length ? count.free.shift() : ++count.used
    const settle = error => {
      if (error?.unsettled) count.free.push(number)
    }
    return { key: `node-red-${base}-${number}`, settle }
  }

  #base(msgid, { method, path, query, headers, json, bytes }) {
    const hash = createHash('sha256')
    hash.update(JSON.stringify([this.#nodeId, msgid, method, path, query, headers, json]))
    if (bytes) hash.update('\n').update(bytes)
    return hash.digest('base64url')
  }
}

module.exports = { IdempotencyKeys }
