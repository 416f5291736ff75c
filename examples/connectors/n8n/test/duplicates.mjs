// What the trigger remembers of events, without n8n: some of it happens only when n8n is slow or fails.
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { describe, test } from 'node:test'

const { remember } = createRequire(import.meta.url)('../dist/nodes/shared/duplicates.js')

class Answer extends EventEmitter {
  headersSent = false

  // n8n answers; it arrives unless the sender has hung up.
  give(statusCode, { arrives = true } = {}) {
    Object.assign(this, { headersSent: true, statusCode })
    if (arrives) this.emit('finish')
  }
}

describe('an event that comes again', () => {
  test('waits until it is known whether it was accepted', () => {
    const first = new Answer()
    assert.equal(remember('slow', 'a', first), 'new')
    assert.equal(remember('slow', 'a', new Answer()), 'starting')
    first.give(200)
    assert.equal(remember('slow', 'a', new Answer()), 'accepted')
    assert.equal(remember('slow', 'b', new Answer()), 'new')
    assert.equal(remember('another trigger', 'a', new Answer()), 'new')
  })

  test('is accepted also when the sender did not wait for the answer', () => {
    const first = new Answer()
    remember('impatient', 'a', first)
    first.give(200, { arrives: false })
    assert.equal(remember('impatient', 'a', new Answer()), 'accepted')
  })

  test('is new when n8n failed to start the workflow', () => {
    for (const arrives of [true, false]) {
      const trigger = `failing ${arrives}`
      const first = new Answer()
      remember(trigger, 'a', first)
      first.give(500, { arrives })
      const second = new Answer()
      assert.equal(remember(trigger, 'a', second), 'new')
      second.give(200)
      assert.equal(remember(trigger, 'a', new Answer()), 'accepted')
    }
  })

  test('is new after a thousand others', () => {
    for (let i = 0; i < 1001; i++) {
      const answer = new Answer()
      remember('busy', `event ${i}`, answer)
      answer.give(200)
    }
    assert.equal(remember('busy', 'event 1', new Answer()), 'accepted')
    assert.equal(remember('busy', 'event 0', new Answer()), 'new')
  })
})
