'use strict'

const { createHash, randomUUID } = require('crypto')

// How often something is tried that failed on its way, and how long it waits in between.
const ATTEMPTS = 3
const PAUSE_MS = 500

// Returns the Idempotency-Key of a request. The service does what has the same key once within 24 hours and repeats its
// first answer after that.
//
// Zapier tells an action nothing that is the same when a step is replayed and differs otherwise: bundle.meta has no
// identifier of the run, and a hash of the input would swallow the second of two equal submissions that are both meant.
// So the user may map such a value, like the ID of the trigger's event; without one each run of the step has its own key.
// what distinguishes steps that were given the same value, which the service would refuse as a mismatch otherwise.
function idempotencyKey(bundle, ...what) {
  const given = String(bundle.inputData.onceId ?? '').trim()
  if (!given) return `zapier-${randomUUID()}`
  return `zapier-${createHash('sha256').update(JSON.stringify([...what, given])).digest('hex')}`
}

const onceField = {
  key: 'onceId',
  label: 'Do Once per',
  type: 'string',
  helpText: 'Optional. Map something that is unique to this submission and stays the same when Zapier replays the step, ' +
    'such as the ID of the trigger. Within 24 hours the service then does the step once and gives the first answer again. ' +
    'Left empty, a replay by hand or by autoreplay may do it twice.',
}

// Makes attempt() again while it fails on the network, or while the service is still busy with an earlier attempt. All
// attempts must have the same Idempotency-Key, or be harmless to repeat.
async function repeating(attempt) {
  for (let number = 1; ; number++) {
    try {
      return await attempt()
    } catch (error) {
      if (number === ATTEMPTS || !isPassing(error)) throw error
      await new Promise(resolve => setTimeout(resolve, number * PAUSE_MS))
    }
  }
}

function isPassing(error) {
  return error.name === 'FetchError' || error.problem?.code === 'idempotency_in_flight'
}

module.exports = { idempotencyKey, onceField, repeating }
