'use strict'
// What the service knows of a trigger: a webhook with the trigger's address.
//
// Nothing is kept on disk. The address belongs to the trigger alone, so the webhook is found again by it, and is taken over
// with a new secret after a restart; a crash leaves neither a second webhook nor one whose secret is lost. Between redeploys
// uuid and secret stay here.

const { randomBytes } = require('crypto')
const { setTimeout: sleep } = require('timers/promises')

// As long as the service keeps what it could not deliver.
const KEPT = 30 * 24 * 60 * 60 * 1000
const REMEMBERED = 1000
// How long to wait before looking what became of a test, the first time and at most.
const FIRST_LOOK = 250
const LONGEST_LOOK = 8000

class Subscription {
  secret = ''
  // Whether there is a node; one that was closed may come back at once.
  open = false
  // Whether a signed delivery has arrived at the address.
  proven = false
  #client
  #uuid
  #url
  #seen = new Set()
  // The ids of tests that are not for flows, and requests that will tell of more.
  #tests = new Set()
  #asking = new Set()
  #queue = Promise.resolve()

  // Makes the webhook what the node wants: {client, url, events, campaignUuid}. What failed while nobody was here is
  // delivered again. It returns warnings.
  ensure(wanted, signal) {
    return this.#inTurn(() => this.#ensure(wanted, signal))
  }

  // Deletes the webhook, unless there is a node again.
  remove(signal) {
    return this.#inTurn(async () => {
      if (this.open || !this.#client) return
      const options = { signal, attempts: 3 }
      // By the address, too, since the answer to a creation may have been lost.
      const uuids = new Set(this.#uuid ? [this.#uuid] : [])
      let unknown
      try {
        for (const webhook of await this.#ours(this.#client, this.#url, options)) uuids.add(webhook.uuid)
      } catch (error) {
        unknown = error
      }
      for (const uuid of uuids) await remove(this.#client, uuid, options)
      if (unknown) throw unknown
      this.#client = this.#uuid = undefined
      this.secret = ''
    })
  }

  // Has the service send a test event and returns what came of it: an attempt, as the service shows it.
  async try(signal) {
    const path = `/v1/deliveries/${await this.#askForTest()}`
    for (let wait = FIRST_LOOK; ; wait = Math.min(2 * wait, LONGEST_LOOK)) {
      await sleep(wait, undefined, { signal })
      const { attempts: [attempt] } = (await this.#client.send({ method: 'GET', path }, { signal, attempts: 3 })).body
      if (attempt) return attempt
    }
  }

  // Returns the delivery of a test event. It goes on when the node ends: its successor must know which test was ours.
  async #askForTest() {
    const request = { method: 'POST', path: `/v1/webhooks/${this.#uuid}/test`, json: {} }
    const asking = this.#client.send(request, { attempts: 3 })
    this.#asking.add(asking)
    try {
      const { uuid, eventUuid } = (await asking).body
      this.#tests.add(eventUuid)
      return uuid
    } finally {
      this.#asking.delete(asking)
    }
  }

  // Tells whether an event is a test that the node itself has asked for.
  async isOwnTest({ id, test }) {
    if (!test) return false
    // It may come before the service has said which it is.
    if (!this.#tests.has(id)) await Promise.allSettled(this.#asking)
    return this.#tests.has(id)
  }

  // Tells whether an event has been here before. The last thousand are remembered.
  has(id) {
    return this.#seen.has(id)
  }

  add(id) {
    this.#seen.add(id)
    if (this.#seen.size > REMEMBERED) this.#seen.delete(this.#seen.values().next().value)
  }

  get where() {
    return this.#url
  }

  // Two changes at a time would each make a webhook.
  #inTurn(work) {
    const turn = this.#queue.then(work)
    this.#queue = turn.catch(() => {})
    return turn
  }

  async #ensure({ client, url, events, campaignUuid }, signal) {
    const before = { client: this.#client, uuid: this.#uuid, url: this.#url }
    const options = { signal, attempts: 1 }
    const [first, ...others] = await this.#ours(client, url, options)
    const wanted = { url, events, campaignUuid: campaignUuid || null }
    // Known before the service does: the first delivery may come before the answer.
    this.secret ||= 'whsec_' + randomBytes(32).toString('base64')
    this.#client = client
    this.#url = url
    if (first) {
      // Headers of its own may have been added in the console; null keeps the value of each.
      const json = { ...wanted, secret: this.secret, disabled: false, headers: first.headers }
      await client.send({ method: 'PUT', path: `/v1/webhooks/${first.uuid}`, json }, options)
      this.#uuid = first.uuid
    } else {
      const json = { ...wanted, secret: this.secret }
      this.#uuid = (await client.send({ method: 'POST', path: '/v1/webhooks', json }, options)).body.uuid
    }
    const warnings = []
    const attempt = (what, work) => work().catch(error => {
      if (signal?.aborted) throw error
      warnings.push(`${what}: ${error.message}`)
    })
    for (const { uuid } of others) await attempt(`A second webhook, ${uuid}, stays`, () => remove(client, uuid, options))
    if (this.#uuid !== before.uuid || url !== before.url) this.proven = false
    if (before.uuid && before.uuid !== this.#uuid) {
      // The node works for another account now.
      await attempt(`The earlier webhook, ${before.uuid}, stays`, () => remove(before.client, before.uuid, options))
    }
    if (first) {
      await attempt('Failed deliveries could not be requested again', () => this.#redeliver(client, first.uuid, options))
    }
    return warnings
  }

  // Has what failed delivered again. Tests that failed come, too, and are dropped: what they were for is over.
  async #redeliver(client, uuid, options) {
    const path = `/v1/webhooks/${uuid}`
    const { body } = await client.send({ method: 'GET', path: `${path}/deliveries`, query: { state: 'failed', limit: 1000 } }, options)
    for (const { test, eventUuid } of body.items) if (test) this.#tests.add(eventUuid)
    const json = { since: new Date(Date.now() - KEPT).toISOString() }
    await client.send({ method: 'POST', path: `${path}/redeliver`, json }, options)
  }

  // Returns the webhooks of the node; first the one it has had.
  async #ours(client, url, options) {
    const { body } = await client.send({ method: 'GET', path: '/v1/webhooks', query: { limit: 1000 } }, options)
    const ours = body.items.filter(webhook => webhook.url === url || webhook.uuid === this.#uuid)
    return ours.sort((a, b) => (b.uuid === this.#uuid) - (a.uuid === this.#uuid))
  }
}

async function remove(client, uuid, options) {
  try {
    await client.send({ method: 'DELETE', path: `/v1/webhooks/${uuid}` }, options)
  } catch (error) {
    if (error.status !== 404) throw error
  }
}

module.exports = { Subscription }
