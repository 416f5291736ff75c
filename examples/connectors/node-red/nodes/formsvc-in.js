'use strict'
const { setTimeout: sleep } = require('timers/promises')
const { lastingId } = require('../lib/identity')
const { EventError, messageOf } = require('../lib/message')
const { Receiver, cleanPath } = require('../lib/receiver')
const { distrust } = require('../lib/signature')
const { inShort } = require('../lib/status')
const { Subscription } = require('../lib/subscription')

const SECOND = 1000
// How long to wait before subscribing is tried again: after the service could not be reached (twice as long each time), and
// after it refused, which may be set right there.
const FIRST_WAIT = SECOND
const LONGEST_WAIT = 60 * SECOND
const REFUSED_WAIT = 300 * SECOND
// How long to wait before another test event after one that did not arrive: twice as long each time, too.
const FIRST_TEST_WAIT = 60 * SECOND
const LONGEST_TEST_WAIT = 3600 * SECOND
// How long to wait at least before subscribing again because a signature was wrong.
const RENEWAL = 600 * SECOND
// Node-RED waits 15 seconds for a node to close.
const TIME_TO_REMOVE = 10 * SECOND

module.exports = function (RED) {
  const receiver = new Receiver(RED.httpNode, { server: RED.server, root: RED.settings.httpNodeRoot })
  // By the ids of nodes. They outlive the nodes, which end and begin with every deploy.
  const subscriptions = new Map()

  class Trigger {
    constructor(node, config) {
      this.node = node
      this.config = config
      // Ends what work() began.
      this.round = new AbortController()
      this.quietUntil = 0
      this.renewAt = 0
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
      this.wants = wanted
      this.work()
    }

    work() {
      this.round.abort()
      this.round = new AbortController()
      const { signal } = this.round
      this.subscribe(this.wants, signal).catch(error => { if (!signal.aborted) this.fail(error) })
    }

    // Tries until events arrive or the node ends.
    async subscribe(wanted, signal) {
      this.status('yellow', 'subscribing')
      for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
        try {
          for (const warning of await this.subscription.ensure(wanted, signal)) this.node.warn(warning)
          return await this.prove(wanted.url, signal)
        } catch (error) {
          if (signal.aborted) return
          this.fail(error, refusesAddress(error) && RED._('formsvc-in.error.not-public'))
          const pause = error.passing ? Math.max(wait, (error.retryAfter ?? 0) * SECOND) : REFUSED_WAIT
          await sleep(pause, undefined, { signal })
        }
      }
    }

    // Has the service send test events until a signed delivery has arrived. Only that shows that there is a way from the service
    // to this node, and what is wrong with it.
    async prove(url, signal) {
      if (this.subscription.proven) return this.status('green', 'receiving')
      this.status('yellow', 'testing')
      for (let wait = FIRST_TEST_WAIT; ; wait = Math.min(2 * wait, LONGEST_TEST_WAIT)) {
        const attempt = await this.subscription.try(signal)
        if (signal.aborted || this.subscription.proven) return
        this.fail(new Error(whyNotDelivered(attempt, url)))
        await sleep(wait, undefined, { signal })
        if (this.subscription.proven) return
      }
    }

    // Hands a delivery to the flow and returns how to answer it.
    async accept(headers, body) {
      const why = distrust(headers, body, this.subscription.secret)
      if (why) {
        this.complain(RED._('formsvc-in.error.refused', { why }))
        this.renew()
        return { status: 401, text: why }
      }
      if (!this.subscription.proven || this.failed) this.status('green', 'receiving')
      this.subscription.proven = true
      try {
        const message = messageOf(body)
        if (await this.subscription.isOwnTest(message.payload)) return { status: 200, text: 'The test event arrived.' }
        if (this.subscription.has(message._msgid)) return { status: 200, text: 'This event is a repeat.' }
        this.node.send(message)
        this.subscription.add(message._msgid)
        return { status: 200, text: 'Thank you.' }
      } catch (error) {
        if (error instanceof EventError) return { status: 400, text: error.message }
        throw error
      }
    }

    // Anybody can post to a public address; that must not fill the log.
    complain(text) {
      if (Date.now() < this.quietUntil) return
      this.quietUntil = Date.now() + 60 * SECOND
      this.node.warn(text)
    }

    // Subscribes again, since somebody may have given the webhook another secret; but not whenever anybody posts something.
    renew() {
      if (!this.subscription.proven || Date.now() < this.renewAt) return
      this.renewAt = Date.now() + RENEWAL
      this.subscription.proven = false
      this.work()
    }

    close(removed, done) {
      this.round.abort()
      this.unroute?.()
      if (this.unroute) this.subscription.open = false
      if (removed) unsubscribe(this.subscription, error => this.node.error(error)).then(done)
      else done()
    }

    status(fill, key) {
      this.failed = false
      this.node.status({ fill, shape: fill === 'green' ? 'dot' : 'ring', text: RED._(`formsvc-in.status.${key}`) })
    }

    // Shows what is wrong, in other words than the error's where there are any.
    fail(error, words) {
      this.failed = true
      this.node.status({ fill: 'red', shape: 'ring', text: words || inShort(error) })
      this.node.error(words ? `${words}\n${error.message}` : error.message)
    }
  }

  const refusesAddress = error => error.problem?.errors?.some?.(({ code }) => code === 'url_refused')

  // Returns what kept a test event from arriving.
  function whyNotDelivered({ status, error, answer }, url) {
    if (error === 'refused_address') return RED._('formsvc-in.error.not-public')
    const key = status === null ? 'unreachable' : status < 300 ? 'elsewhere' : 'answered'
    return RED._(`formsvc-in.error.${key}`, { url, status, why: error, answer: String(answer).trim().slice(0, 200) })
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
