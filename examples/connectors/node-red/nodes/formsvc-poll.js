'use strict'
const { setTimeout: sleep } = require('timers/promises')
const feed = require('../lib/feed')
const { messageOf } = require('../lib/message')
const { inShort } = require('../lib/status')

const SECOND = 1000
// A key has 1000 requests an hour unless the operator decides otherwise; these are 60 and 720 of them.
const USUAL_INTERVAL = 60 * SECOND
const SHORTEST_INTERVAL = 5 * SECOND
// How long to wait at most after the service could not be reached (twice as long each time), and after it refused.
const LONGEST_WAIT = 300 * SECOND
// What the position is kept as in the context of the node.
const KEY = 'position'

module.exports = function (RED) {
  class Poll {
    constructor(node, config) {
      this.node = node
      this.config = config
      this.ending = new AbortController()
      this.interval = Math.max(SHORTEST_INTERVAL, Number(config.interval) * SECOND || USUAL_INTERVAL)
    }

    // Returns what to ask the service for, or fails with what the settings of the node lack.
    wanted() {
      const account = RED.nodes.getNode(this.config.account)
      if (!account) throw new Error(RED._('formsvc-poll.error.no-account'))
      const events = [this.config.events].flat().filter(Boolean)
      if (!events.length) throw new Error(RED._('formsvc-poll.error.no-events'))
      return { client: account.client(), events, campaignUuid: String(this.config.campaign ?? '').trim() }
    }

    async run() {
      const { signal } = this.ending
      const wanted = this.wanted()
      this.status('yellow', RED._('formsvc-poll.status.starting'))
      for (let failures = 0; ;) {
        let wait = this.interval
        try {
          await this.poll(wanted)
          failures = 0
        } catch (error) {
          if (signal.aborted) return
          wait = pause(error, Math.min(this.interval * 2 ** failures++, LONGEST_WAIT))
          this.fail(error, wait)
        }
        await sleep(wait, undefined, { signal })
      }
    }

    // Makes messages of all events since the last time.
    async poll(wanted) {
      const { signal } = this.ending
      // A position in the events of another campaign or service is none here.
      const of = `${wanted.client.baseUrl} ${wanted.campaignUuid}`
      this.position ??= await this.recall()
      if (this.position?.of !== of) await this.begin(wanted, of)
      for (let more = true; more;) {
        const page = await this.read(wanted, of)
        // What is read when the node ends comes again to the next one.
        if (signal.aborted) return
        for (const event of page.items) this.node.send(messageOf(event))
        if (page.nextCursor !== this.position.cursor) await this.keep({ ...this.position, cursor: page.nextCursor })
        more = page.more
      }
      this.status('green', RED._('formsvc-poll.status.polling', { since: timeOf(this.position.since) }))
    }

    async read(wanted, of) {
      try {
        return await feed.next(wanted.client, wanted, this.position.cursor, this.ending.signal)
      } catch (error) {
        if (error.code !== 'invalid_cursor') throw error
        // The key is of another account now, or the service has begun anew.
        this.node.warn(RED._('formsvc-poll.error.lost', { since: timeOf(this.position.since) }))
        await this.begin(wanted, of)
        return feed.next(wanted.client, wanted, this.position.cursor, this.ending.signal)
      }
    }

    // Begins with what happens from now on.
    async begin({ client, campaignUuid }, of) {
      const since = Date.now()
      await this.keep({ of, since, cursor: await feed.end(client, campaignUuid, this.ending.signal) })
    }

    recall() {
      return new Promise((resolve, reject) => {
        this.node.context().get(KEY, (error, value) => (error ? reject(error) : resolve(value)))
      })
    }

    keep(position) {
      this.position = position
      return new Promise((resolve, reject) => {
        this.node.context().set(KEY, position, error => (error ? reject(error) : resolve()))
      })
    }

    status(fill, text) {
      this.node.status({ fill, shape: fill === 'green' ? 'dot' : 'ring', text })
    }

    fail(error, wait) {
      const again = wait === undefined ? '' : ` ${RED._('formsvc-poll.status.again', { at: timeOf(Date.now() + wait) })}`
      this.status('red', inShort(error) + again)
      this.node.error(error.message)
    }
  }

  function FormsvcPoll(config) {
    RED.nodes.createNode(this, config)
    const poll = new Poll(this, config)
    this.on('close', () => poll.ending.abort())
    poll.run().catch(error => { if (!poll.ending.signal.aborted) poll.fail(error) })
  }
  RED.nodes.registerType('formsvc-poll', FormsvcPoll)
}

// Returns how long to wait after a failure: at least as long as the service asks for.
function pause(error, usual) {
  return Math.max(error.passing ? usual : LONGEST_WAIT, (error.retryAfter ?? 0) * SECOND)
}

// Returns a time as people here write it, to the second.
function timeOf(milliseconds) {
  const local = new Date(milliseconds - new Date(milliseconds).getTimezoneOffset() * 60 * SECOND)
  return local.toISOString().slice(0, 19).replace('T', ' ')
}
