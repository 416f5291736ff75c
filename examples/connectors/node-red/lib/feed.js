'use strict'
// The feed of the service's events, for those that it can't send to.

// Enough for catching up with few requests, and few enough messages at a time for flows.
const PAGE = 200
// Cursors don't depend on the types of events that are asked for. Asking for those that are rare skips what was before.
const RARE = ['signature.completed']

// Returns a cursor after all events of a campaign, or of all.
async function end(client, campaignUuid, signal) {
  for (let cursor; ;) {
    const page = await read(client, { event: RARE, campaignUuid, cursor, limit: 1000 }, signal)
    if (!page.more) return page.nextCursor
    cursor = page.nextCursor
  }
}

// Returns {items, nextCursor, more} of the events after a cursor, in their order.
function next(client, { events, campaignUuid }, cursor, signal) {
  return read(client, { event: events, campaignUuid, cursor, limit: PAGE }, signal)
}

async function read(client, query, signal) {
  return (await client.send({ method: 'GET', path: '/v1/events', query }, { signal, attempts: 1 })).body
}

module.exports = { end, next }
