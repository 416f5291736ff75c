'use strict'
const { promisify } = require('util')
const { IdempotencyKeys } = require('../lib/idempotency')
const { lastingId } = require('../lib/identity')
const { operations, run, FieldError } = require('../lib/operations')
const { inShort } = require('../lib/status')

module.exports = function (RED) {
  const evaluate = promisify(RED.util.evaluateNodeProperty)

  // Returns the value of a field of the editor: {value, type}.
  async function valueOf(node, msg, value, type) {
    // A campaign that was chosen from the list is its UUID, and so are the others of the editor's own types.
    if (type === 'campaign' || type === 'text') return value
    // Flows of before a field, and those that programs make, may be without it.
    if (value === undefined || value === null || (value === '' && type !== 'str')) return undefined
    try {
      return await evaluate(value, type ?? 'str', node, msg)
    } catch (error) {
      // msg.a.b where there is no msg.a is as missing as where there is no b.
      if (type === 'msg' && error instanceof TypeError) return undefined
      throw error
    }
  }

  async function answersOf(node, msg, config) {
    if (config.answersFrom !== 'list') return valueOf(node, msg, config.answers, config.answersType)
    const answers = Object.create(null)
    for (const { name, value, type } of config.answerList ?? []) {
      if (name in answers) throw new FieldError(RED._('formsvc.error.twice', { name }))
      answers[name] = await valueOf(node, msg, value, type)
    }
    return answers
  }

  async function valuesOf(node, msg, config) {
    const values = {}
    for (const field of operations[config.operation].fields) {
      values[field] = field === 'answers' ? await answersOf(node, msg, config)
        : await valueOf(node, msg, config[field], config[`${field}Type`])
    }
    return values
  }

  function Formsvc(config) {
    RED.nodes.createNode(this, config)
    const keys = new IdempotencyKeys(lastingId(this))
    const ending = new AbortController()
    let busy = 0

    const show = (fill, shape, text) => this.status({ fill, shape, text })

    const work = async msg => {
      const account = RED.nodes.getNode(config.account)
      if (!account) throw new FieldError(RED._('formsvc.error.no-account'))
      if (!Object.hasOwn(operations, config.operation)) throw new FieldError(RED._('formsvc.error.no-operation'))
      const keyOf = request => {
        if (msg.idempotencyKey === undefined) return keys.take(msg._msgid, request)
        return { key: ownKey(msg.idempotencyKey), settle() {} }
      }
      const onRetry = (error, wait) => {
        show('yellow', 'ring', RED._('formsvc.status.waiting', { seconds: Math.ceil(wait / 1000) }))
      }
      return run(config.operation, await valuesOf(this, msg, config), account.client(), { keyOf, onRetry, signal: ending.signal })
    }

    this.on('input', async (msg, send, done) => {
      busy++
      show('blue', 'dot', RED._('formsvc.status.busy'))
      try {
        const result = await work(msg)
        // A message that failed before and was sent round again has not failed any more.
        delete msg.problem
        send(Object.assign(msg, result))
        if (--busy === 0) show('green', 'dot', RED._('formsvc.status.done'))
        done()
      } catch (error) {
        busy--
        const why = ending.signal.aborted ? new Error(RED._('formsvc.error.closed')) : error
        show('red', 'ring', inShort(why))
        // Catch nodes see it, besides msg.error.message, which has it in words.
        if (why.problem) msg.problem = why.problem
        else delete msg.problem
        done(why)
      }
    })

    this.on('close', () => {
      ending.abort()
      this.status({})
    })
  }
  RED.nodes.registerType('formsvc', Formsvc)

  function ownKey(key) {
    if (typeof key === 'string' && /^[!-~]{1,255}$/.test(key)) return key
    throw new FieldError(RED._('formsvc.error.bad-key'))
  }
}
