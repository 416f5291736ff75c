'use strict'
const { setTimeout: sleep } = require('timers/promises')
const { lastingId } = require('../lib/identity')
const { Receiver, cleanPath } = require('../lib/receiver')
const { distrust } = require('../lib/signature')
const { Subscription } = require('../lib/subscription')

const SECOND = 1000
// How long to wait before subscribing is tried again: after the service could not be reached (twice as long each time), and
// after it refused, which may be set right there.
const FIRST_WAIT = SECOND
const LONGEST_WAIT = 60 * SECOND
const REFUSED_WAIT = 300 * SECOND
// Node-RED waits 15 seconds for a node to close.
const TIME_TO_REMOVE = 10 * SECOND

module.exports = function (RED) {
  const receiver = new Receiver(RED.httpNode)
  // By the ids of nodes. They outlive the nodes, which end and begin with every deploy.
  const subscriptions = new Map()

  class Trigger {
    constructor(node, config) {
      this.node = node
      this.config = config
      this.ending = new AbortController()
      this.quietUntil = 0
      this.id = lastingId(node)
      if (!subscriptions.has(this.id)) subscriptions.set(this.id, new Subscription())
      this.subscription = subscriptions.get(this.id)
    }

    // Returns what to ask the service for, or fails with what the settings of the node lack.
    wanted() {
      const { node, config } = this
      const account = RED.nodes.getNode(config.account)
      if (!account) throw new Error(RED._('formsvc-in.error.no-account'))
      const events = [config.events].flat().filter(Boolean)
      if (!events.length) throw new Error(RED._('formsvc-in.error.no-events'))
      if (RED.settings.httpNodeRoot === false) throw new Error(RED._('formsvc-in.error.no-http'))
      this.path = cleanPath(config.path || `formsvc/${this.id}`)
      if (!this.path) throw new Error(RED._('formsvc-in.error.bad-path', { path: config.path }))
      const url = address(config.publicUrl, this.path)
      return { client: account.client(), url, events, campaignUuid: String(config.campaign ?? '').trim() }
    }

    start() {
      let wanted
      try {
        wanted = this.wanted()
      } catch (error) {
        return this.fail(error)
      }
      this.unroute = receiver.add(this.path, (headers, body) => this.accept(headers, body))
      if (!this.unroute) return this.fail(new Error(RED._('formsvc-in.error.path-taken', { path: this.path })))
      this.subscription.open = true
      this.subscribe(wanted).catch(error => {
        if (!this.ending.signal.aborted) this.fail(error)
      })
    }

    // Tries until it is done or the node ends.
    async subscribe(wanted) {
      const { signal } = this.ending
      this.status('yellow', 'subscribing')
      for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
        try {
          for (const warning of await this.subscription.ensure(wanted, signal)) this.node.warn(warning)
          if (!signal.aborted) this.status('green', 'listening')
          return
        } catch (error) {
          if (signal.aborted) return
          this.fail(error)
          const pause = error.passing ? Math.max(wait, (error.retryAfter ?? 0) * SECOND) : REFUSED_WAIT
          await sleep(pause, undefined, { signal })
        }
      }
    }

    // Hands a delivery to the flow and returns how to answer it.
    accept(headers, body) {
      const why = distrust(headers, body, this.subscription.secret)
      if (why) {
        this.complain(RED._('formsvc-in.error.refused', { why }))
        return { status: 401, text: why }
      }
      let event
      try {
        event = JSON.parse(body)
      } catch {
        return { status: 400, text: 'The body is not JSON.' }
      }
      if (typeof event?.id !== 'string' || typeof event.event !== 'string') {
        return { status: 400, text: 'The body is not an event: id or event is missing.' }
      }
      if (this.subscription.has(event.id)) return { status: 200, text: 'This event has been here before.' }
      // The event's id as the message's: an event that comes again after a crash makes the same message, and the action nodes
      // then send the same idempotency keys.
      this.node.send({ _msgid: event.id, topic: event.event, payload: event, event: JSON.parse(body) })
      this.subscription.add(event.id)
      return { status: 200, text: 'Thank you.' }
    }

    // Anybody can post to a public address; that must not fill the log.
    complain(text) {
      if (Date.now() < this.quietUntil) return
      this.quietUntil = Date.now() + 60 * SECOND
      this.node.warn(text)
    }

    close(removed, done) {
      this.ending.abort()
      this.unroute?.()
      if (this.unroute) this.subscription.open = false
      if (removed) unsubscribe(this.subscription, error => this.node.error(error)).then(done)
      else done()
    }

    status(fill, key) {
      this.node.status({ fill, shape: fill === 'green' ? 'dot' : 'ring', text: RED._(`formsvc-in.status.${key}`) })
    }

    fail(error) {
      this.node.status({ fill: 'red', shape: 'ring', text: error.message.split('\n')[0].slice(0, 80) })
      this.node.error(error.message)
    }
  }

  // A failure keeps nobody from removing a node.
  async function unsubscribe(subscription, log) {
    try {
      await subscription.remove(AbortSignal.timeout(TIME_TO_REMOVE))
    } catch (error) {
      log(RED._('formsvc-in.error.orphan', { url: subscription.where, why: error.message }))
    }
  }

  // Node-RED does not tell the nodes of a subflow that its instance was removed, and a trigger may have lost its account. So,
  // when the flows have started, whoever has not come back has gone. (They do not start when Node-RED ends, is stopped by hand,
  // or lacks a type of node: all webhooks stay then.)
  // A deployment in between begins that anew: its nodes are away for a moment only.
  let timer
  RED.events.on('flows:stopping', () => clearTimeout(timer))
  RED.events.on('flows:started', () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      for (const [id, subscription] of subscriptions) {
        if (subscription.open || !subscription.where) continue
        unsubscribe(subscription, error => RED.log.error(`[formsvc-in:${id}] ${error}`))
      }
    }, SECOND)
    timer.unref()
  })

  // Returns the address of a path for the service. Public is what the user says that Node-RED's own root is.
  function address(publicUrl, path) {
    const base = String(publicUrl ?? '').trim()
    if (!base) throw new Error(RED._('formsvc-in.error.no-url'))
    let url
    try {
      url = new URL(base)
    } catch {
      throw new Error(RED._('formsvc-in.error.bad-url', { url: base }))
    }
    if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
      throw new Error(RED._('formsvc-in.error.bad-url', { url: base }))
    }
    return url.href.replace(/\/+$/, '') + path
  }

  function FormsvcIn(config) {
    RED.nodes.createNode(this, config)
    const trigger = new Trigger(this, config)
    this.on('close', (removed, done) => trigger.close(removed, done))
    trigger.start()
  }
  RED.nodes.registerType('formsvc-in', FormsvcIn)
}
