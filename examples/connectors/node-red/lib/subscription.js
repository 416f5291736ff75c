'use strict'
// What the service knows of a trigger: a webhook with the trigger's address.
//
// Nothing is kept on disk. The address belongs to the trigger alone, so the webhook is found again by it, and is taken over
// with a new secret after a restart; a crash leaves neither a second webhook nor one whose secret is lost. Between redeploys
// uuid and secret stay here.

const { randomBytes } = require('crypto')

// As long as the service keeps what it could not deliver.
const KEPT = 30 * 24 * 60 * 60 * 1000
const REMEMBERED = 1000

class Subscription {
  secret = ''
  // Whether there is a node; one that was closed may come back at once.
  open = false
  #client
  #uuid
  #url
  #seen = new Set()
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
    const before = { client: this.#client, uuid: this.#uuid }
    const options = { signal, attempts: 1 }
    const [first, ...others] = await this.#ours(client, url, options)
    const wanted = { url, events, campaignUuid: campaignUuid || null }
    // Known before the service does: the first delivery may come before the answer.
    this.secret ||= 'whsec_' + randomBytes(32).toString('base64')
    this.#client = client
    this.#url = url
    if (first) {
      // Headers of its own may have been added in the account settings; null keeps the value of each.
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
    if (before.uuid && before.uuid !== this.#uuid) {
      // The node works for another account now.
      await attempt(`The webhook of before, ${before.uuid}, stays`, () => remove(before.client, before.uuid, options))
    }
    if (first) {
      await attempt('What failed meanwhile is not delivered again', () => redeliver(client, first.uuid, options))
    }
    return warnings
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

async function redeliver(client, uuid, options) {
  const json = { since: new Date(Date.now() - KEPT).toISOString() }
  await client.send({ method: 'POST', path: `/v1/webhooks/${uuid}/redeliver`, json }, options)
}

module.exports = { Subscription }
