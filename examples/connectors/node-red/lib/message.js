'use strict'
// The messages that events become.

// A body that is no event.
class EventError extends Error {}

// Returns the message of an event: the bytes of a delivery, or an item of the feed as it was decoded. The message has the
// event's id: an event that comes again after a crash makes the same message, and the action nodes then send the same
// idempotency keys. The event is there twice, since nodes replace or change the payload.
function messageOf(given) {
  const event = Buffer.isBuffer(given) ? decode(given) : given
  if (typeof event?.id !== 'string' || typeof event.event !== 'string') {
    throw new EventError('The body is not an event: id or event is missing.')
  }
  return { _msgid: event.id, topic: event.event, payload: event, event: structuredClone(event) }
}

function decode(body) {
  try {
    return JSON.parse(body)
  } catch {
    throw new EventError('The body is not JSON.')
  }
}

module.exports = { EventError, messageOf }
